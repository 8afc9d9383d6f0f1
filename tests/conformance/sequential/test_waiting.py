"""Steps that contain another step: they send its request to a given broker, wait for its effect, or repeat it."""

import datetime as dt
import itertools
import re
import time
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from conformance.sequential import timeouts
from conformance.sequential.connections import RESPONSE_TIMEOUT_S, Connections
from conformance.sequential.judging import kind_of
from conformance.sequential.response import NOT_READY
from conformance.sequential.routing import NotReady
from conformance.sequential.session import Session
from conformance.sequential.steps import (
    AfterCleanup,
    AlterReassignment,
    ApiKey,
    AsClient,
    AwaitTopic,
    Batch,
    CreateTopic,
    DeleteTopic,
    DescribeConfigs,
    ElectLeaders,
    Eventually,
    Fetch,
    IncrementalAlterConfigs,
    ListOffsets,
    LongPoll,
    Merged,
    OffsetFetch,
    On,
    Operation,
    Produce,
    RawRequest,
    Record,
    Repeated,
    ResourceType,
    Script,
    WithUnknownTags,
)
from conformance.sequential.strategies import placed
from fixtures.targets.target import Node
from tests.conformance.fakes import FakeTarget
from tests.conformance.tampering_proxy import TamperingProxy, altered, altered_responses, api, with_errors

ONE_MORE = Produce((Batch((Record(b"a"),)),))
COMPACT = IncrementalAlterConfigs((("cleanup.policy", Operation.SET, "compact"),))
SETTING = DescribeConfigs(("cleanup.policy",))


def metadata_with(change):
    """Return a tampering that replaces the partitions of each topic in Metadata by `change(partitions)`."""

    def tamper(request, forward):
        response = forward(request)
        if api(request) != "Metadata":
            return response
        return altered(response, "topics", lambda topic: replace(topic, partitions=tuple(change(topic.partitions))))

    return tamper


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (metadata_with(lambda partitions: partitions[:1]), r"Metadata of broker \d+ listed 1 of 2 partitions"),
        (
            metadata_with(lambda partitions: [replace(each, leader_id=-1) for each in partitions]),
            "Metadata named no leader of partition 0",
        ),
        (
            altered_responses("ListOffsets", lambda _, part: with_errors(part, ErrorCode.not_leader_or_follower)),
            "the leader of partition 0 returned NOT_LEADER_OR_FOLLOWER to ListOffsets",
        ),
    ],
    ids=["partitions", "leader", "error"],
)
def test_the_reason_why_a_new_topic_cannot_be_used_is_returned(broker, monkeypatch, tamper, reason):
    monkeypatch.setattr(timeouts, "READY_TIMEOUT_S", 0.1)
    with TamperingProxy(broker, tamper) as proxy:
        (response,) = run(proxy, CreateTopic(partitions=2))
    assert re.fullmatch(f"{reason} for 0.1 s", response[NOT_READY])


def test_the_reason_is_also_that_of_merged_requests(broker, monkeypatch):
    monkeypatch.setattr(timeouts, "READY_TIMEOUT_S", 0.1)
    with TamperingProxy(broker, metadata_with(lambda partitions: partitions[:1])) as proxy:
        (response,) = run(proxy, Merged((CreateTopic(), CreateTopic("trial-two", partitions=2))))
    assert re.fullmatch(r"Metadata of broker \d+ listed 1 of 2 partitions for 0.1 s", response[NOT_READY])
    assert [each["error"] for each in response["responses"]] == ["NONE", "NONE"]


def test_a_response_without_a_coordinator_is_awaited(broker, monkeypatch):
    def without_coordinators(request, forward):
        response = forward(request)
        return replace(response, coordinators=()) if api(request) == "FindCoordinator" else response

    monkeypatch.setattr(timeouts, "READY_TIMEOUT_S", 0.1)
    with (
        TamperingProxy(broker, without_coordinators) as proxy,
        pytest.raises(NotReady, match="no coordinator of a group"),
    ):
        run(proxy, OffsetFetch())


def test_a_throttle_time_begins_before_its_response_arrives(broker):
    def throttles_and_responds_late(request, forward):
        response = forward(request)
        if api(request) != "ListOffsets":
            return response
        time.sleep(0.1)
        return replace(response, throttle_time=dt.timedelta(milliseconds=150))

    with TamperingProxy(broker, throttles_and_responds_late) as proxy:
        responses = run(proxy, CreateTopic(), AsClient("trial-other", ListOffsets()))
    assert responses[-1]["muted"] == "for the throttle time"


class Late:
    """Tampering that removes all settings from the first `responses` responses to DescribeConfigs."""

    def __init__(self, responses: int) -> None:
        self.left = responses
        self.requests = 0

    def __call__(self, request, forward):
        response = forward(request)
        if api(request) != "DescribeConfigs":
            return response
        self.requests += 1
        self.left -= 1
        if self.left < 0:
            return response
        stale = tuple(replace(result, configs=()) for result in response.results)
        return replace(response, results=stale)


def run(target, *steps):
    with Session(target, "waiting") as opened:
        return opened.run(Script(steps))


def test_a_late_effect_is_awaited(broker):
    late = Late(responses=3)
    with TamperingProxy(broker, late) as proxy:
        responses = run(proxy, CreateTopic(), COMPACT, Eventually(SETTING))
    assert responses[-1]["set"] == (("cleanup.policy", "compact"),)
    assert late.requests >= 4


def test_an_absent_effect_is_awaited_once_and_the_last_response_returned(broker, monkeypatch):
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.1)
    late = Late(responses=1_000_000)
    with TamperingProxy(broker, late) as proxy:
        responses = run(proxy, CreateTopic(), COMPACT, Eventually(SETTING))
        requests = late.requests
        assert responses[-1]["set"] == ()
        run(proxy, CreateTopic(), COMPACT, Eventually(SETTING), Eventually(SETTING), Eventually(SETTING))
    assert late.requests - requests < 2 * requests + 3  # each later `Eventually` sends one


def test_the_creation_of_a_deleted_topic_is_repeated_while_the_topic_exists(broker):
    """In a ZooKeeper cluster, a deleted topic exists for some time after the brokers have dropped its metadata."""
    rejected = []

    def tamper(request, forward):
        if api(request) != "CreateTopics" or "DeleteTopics" not in seen or len(rejected) == 3:
            seen.add(api(request))
            return forward(request)
        rejected.append(forward(replace(request, validate_only=True)))
        topics = tuple(
            replace(topic, error_code=ErrorCode.topic_already_exists, topic_config_error_code=ErrorCode.none)
            for topic in rejected[-1].topics
        )
        return replace(rejected[-1], topics=topics)

    seen = set()
    with TamperingProxy(broker, tamper) as proxy:
        responses = run(proxy, CreateTopic(), DeleteTopic(), CreateTopic(), CreateTopic())
    assert [response["error"] for response in responses] == ["NONE", "NONE", "NONE", "TOPIC_ALREADY_EXISTS"]
    assert len(rejected) == 3


def test_retention_is_awaited_from_the_first_check_of_a_broker_that_has_just_started(broker, monkeypatch):
    """Like Kafka before 3.8, the broker does not describe `log.initial.task.delay.ms`, and the effect is late."""
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.0)
    late = Late(responses=10)

    def tamper(request, forward):
        if api(request) == "DescribeConfigs" and request.resources[0].resource_type == ResourceType.BROKER:
            response = forward(request)
            (result,) = response.results
            kept = tuple(config for config in result.configs if config.name != "log.initial.task.delay.ms")
            return replace(response, results=(replace(result, configs=kept),))
        return late(request, forward)

    with TamperingProxy(broker, tamper) as proxy:
        responses = run(proxy, CreateTopic(), COMPACT, AfterCleanup(SETTING))
    assert responses[-1]["set"] == (("cleanup.policy", "compact"),)


def test_a_step_is_sent_to_the_broker_that_is_named(cluster):
    responses = run(cluster, placed(2, 3), *(On(broker, ListOffsets()) for broker in (1, 2, 3)))
    errors = [response["error"] for response in responses[1:]]
    assert errors == ["NOT_LEADER_OR_FOLLOWER", "NONE", "NOT_LEADER_OR_FOLLOWER"]


def test_requests_follow_an_awaited_leader(cluster):
    responses = run(cluster, placed(1, 2), AlterReassignment((2, 1)), ElectLeaders(), AwaitTopic(), ONE_MORE)
    assert responses[3]["partitions"] == ((0, 2, (2, 1), (1, 2)),)
    assert responses[-1]["error"] == "NONE"


def test_different_metadata_is_reported_as_disagreement(cluster, monkeypatch):
    """Each of three successive responses has a different leader epoch."""
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.2)
    responses_altered = itertools.count(1)

    def tamper(request, forward):
        response = forward(request)
        if api(request) != "Metadata" or not response.topics:
            return response
        epoch = next(responses_altered) % 3
        return replace(
            response,
            topics=tuple(
                replace(topic, partitions=tuple(replace(part, leader_epoch=epoch) for part in topic.partitions))
                for topic in response.topics
            ),
        )

    with TamperingProxy(cluster, tamper) as proxy:
        responses = run(proxy, placed(1), AwaitTopic())
    assert responses[-1]["all_agree"] is False


def test_a_waiting_fetch_returns_records_of_another_connection(broker):
    long_poll = LongPoll(Fetch(max_wait_ms=60_000, min_bytes=1), (ONE_MORE,))
    assert [record.value for record in run(broker, CreateTopic(), long_poll)[1]["records"]] == [b"a"]


def test_unknown_tags_are_on_the_wire(broker):
    """The proxy cannot decode a request with an unknown tag. Therefore `tamper` is not called with this Fetch."""
    seen = []

    def tamper(request, forward):
        seen.append(api(request))
        return forward(request)

    with TamperingProxy(broker, tamper) as proxy:
        run(proxy, CreateTopic())
        without = seen.count("Fetch")
        responses = run(proxy, CreateTopic(), WithUnknownTags(Fetch()))
    assert seen.count("Fetch") == without
    assert responses[-1]["error"] == "NONE"


@pytest.mark.parametrize("step", [Fetch(), On(2, Fetch()), Eventually(On(2, Fetch())), WithUnknownTags(Fetch())])
def test_a_step_is_judged_as_its_request(step):
    assert kind_of(step) is Fetch


def test_an_expected_error_ends_the_waiting(broker):
    """Waiting ends with the response that the model expects, which may be an error."""
    responses = run(broker, CreateTopic(), Eventually(ListOffsets(topic="trial-none")))
    assert responses[-1]["error"] in {"UNKNOWN_TOPIC_OR_PARTITION", ErrorCode.unknown_topic_id.name.upper()}


def test_a_request_is_repeated_in_each_version_on_every_broker(cluster):
    seen = []

    def tamper(request, forward):
        seen.append((api(request), request.__version__))
        return forward(request)

    fields = {"include_cluster_authorized_operations": False, "include_fenced_brokers": False}
    repeated = Repeated(
        RawRequest(ApiKey.DESCRIBE_CLUSTER, fields, ()), on_every_broker=True, varying=("controller_id",)
    )
    with TamperingProxy(cluster, tamper) as proxy:
        (response,) = run(proxy, repeated)
    assert response == {"errors": (), "differing": (), "decreased": ()}
    assert {seen.count(("DescribeCluster", version)) for version in (0, 1)} == {3 * 3}  # three times on three brokers


def test_after_a_missed_response_the_rest_of_the_script_waits_less_for_each_response():
    connections = Connections(FakeTarget(nodes=(Node(1, "127.0.0.1", 9),)))
    connections.response_missed()
    assert connections.client(1).timeout_s < RESPONSE_TIMEOUT_S
    connections.begin_script()
    assert connections.client(1).timeout_s == RESPONSE_TIMEOUT_S
