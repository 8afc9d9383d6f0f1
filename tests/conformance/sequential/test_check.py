"""The check of a sequential requirement: verdicts, confirmation, several targets, and brokers that fail."""

import datetime as dt
import itertools
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from conformance.check_context import CheckContext
from conformance.liveness import responds
from conformance.sequential import connections, timeouts
from conformance.sequential.check import judges, sequential
from conformance.sequential.connections import TargetDown
from conformance.sequential.judging import Judges, Rank, judge
from conformance.sequential.layout import build
from conformance.sequential.response import CLOSED, NOT_READY
from conformance.sequential.session import Session
from conformance.sequential.steps import (
    AwaitTopic,
    Batch,
    CreateTopic,
    DeleteTopic,
    Eventually,
    Fetch,
    InitProducerId,
    ListOffsets,
    Metadata,
    Pipelined,
    Produce,
    RawBytes,
    Record,
    Script,
)
from conformance.sequential.strategies import many, produces, script
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient
from fixtures.clients.transport import SOCKETS
from fixtures.targets.target import Node
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import TamperingProxy, altered, altered_responses, api, with_errors

PRODUCE = Produce((Batch((Record(b"a"),)),))
READ_BACK = sequential(
    script(CreateTopic(), many(produces(), at_most=3), Fetch()), judges("error", "records", of=Fetch)
)


def check(requirement_check, targets, *, shrink_seconds=3.0, scripts_max=5, requirement_id="area/words", **fields):
    context = CheckContext(
        requirement_id=requirement_id,
        targets=targets,
        seed=1,
        scripts_max=scripts_max,
        shrink_seconds=shrink_seconds,
        history_dirs={},
        script_ran=lambda target, done, planned: None,
        **fields,
    )
    return requirement_check(context)


def loses_records(_request, part):
    return replace(part, records=b"")


def damages(_request, part):
    return replace(part, records=part.records[:-1] + bytes([part.records[-1] ^ 1])) if part.records else part


@dataclass
class Renamed:
    """A target with another name and kind, but with the same broker."""

    inner: object
    name: str
    kind: str

    def __getattr__(self, attribute):
        return getattr(self.inner, attribute)


class Fragile:
    """A target that goes down at each of the first `times` Fetch requests."""

    def __init__(self, target, times):
        self._target, self._times = target, times
        self._proxy = self._start()

    def _start(self):
        return TamperingProxy(self._target, self._dies_by_fetch).__enter__()

    def _dies_by_fetch(self, request, forward):
        if api(request) != "Fetch" or self._times == 0:
            return forward(request)
        self._times -= 1
        self.stop()
        return None

    def stop(self):
        self._proxy.__exit__()

    def revive(self, _target):
        if not responds(self):
            self._proxy = self._start()
        return True

    def __getattr__(self, attribute):
        return getattr(self._proxy, attribute)


# --- judge


STEPS = Script((CreateTopic(), PRODUCE, Fetch()))
FINE = (
    {"error": "NONE"},
    {"error": "NONE", "base_offset": 0},
    {"error": "NONE", "high_watermark": 1},
)


def test_judged_fields_of_one_kind_of_step_are_joined():
    joined = judges("error", of=Produce) | judges("base_offset", of=Produce) | judges("error", of=CreateTopic)
    assert joined.of(Produce) == {"error", "base_offset"}
    assert joined.of(CreateTopic) == {"error"}
    assert Fetch not in joined


def test_only_judged_fields_of_judged_steps_decide():
    wrong = (FINE[0], {"error": "NONE", "base_offset": 9}, FINE[2])
    assert judge(STEPS, wrong, judges("base_offset", of=Produce)).verdict is Verdict.VIOLATION
    assert judge(STEPS, wrong, judges("error", of=Produce)).verdict is Verdict.OK
    assert judge(STEPS, wrong, judges("error", of=Fetch)).verdict is Verdict.OK


def test_a_connection_that_a_step_closes_is_the_cause_whatever_is_judged():
    found = judge(STEPS, (FINE[0], CLOSED, {"error": "NONE", "high_watermark": 0}), judges("high_watermark", of=Fetch))
    assert found.reason.startswith("step 2, Produce: connection was closed, not a response (also step 3, Fetch: ")
    assert judge(STEPS, (FINE[0], CLOSED, FINE[2]), judges("error", of=Fetch)).verdict is Verdict.VIOLATION


def test_an_effect_that_was_awaited_without_success_is_the_cause_of_later_deviations():
    """After the first timeout, a later step reads its effect only once, so it may deviate for the same reason."""
    script = Script((CreateTopic(), AwaitTopic(), Eventually(Metadata())))
    awaited = {"all_agree": True, "offline_replicas": 1, "leader_epochs": (0,)}
    found = judge(script, (FINE[0], awaited, {"topics": ()}), judges("topics", of=Metadata))
    assert found.reason.startswith("step 2, AwaitTopic: offline_replicas was 1, not 0 (also step 3, Metadata: topics")
    as_expected = {"topics": (("trial", "NONE", 1),)}
    assert judge(script, (FINE[0], awaited, as_expected), judges("topics", of=Metadata)).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("epochs", "verdict"),
    [
        ((None, 7, 7), Verdict.OK),  # the oldest version has no epoch
        ((7, 7, 7), Verdict.OK),
        ((0, 0, 0), Verdict.OK),
        ((None, 0, 7), Verdict.VIOLATION),
        ((7, 0, 7), Verdict.VIOLATION),
        ((None, None, 7), Verdict.VIOLATION),  # no other version has the field
    ],
)
def test_a_deviation_in_each_version_is_none_between_versions(epochs, verdict):
    script = Script((CreateTopic(), *(ListOffsets(version=version) for version in range(3))))
    responses = ({"error": "NONE", "offset": 0} | ({} if each is None else {"leader_epoch": each}) for each in epochs)
    between = Judges({}, compares_versions=True) | judges("error", "leader_epoch", of=ListOffsets)
    assert judge(script, (FINE[0], *responses), between).verdict is verdict


@pytest.mark.parametrize(
    ("second_errors", "verdict"),
    [
        (("NONE", "NONE"), Verdict.OK),
        (("NONE", "UNKNOWN_TOPIC_OR_PARTITION"), Verdict.VIOLATION),
    ],
)
def test_a_repeated_step_is_compared_with_the_same_repetition_in_other_versions(second_errors, verdict):
    blocks = [(CreateTopic(), *(DeleteTopic(version=version),) * 2) for version in (1, 2)]
    responses = [({"error": "NONE"}, {"error": "NONE"}, {"error": error}) for error in second_errors]
    judged = replace(judges("error", of=DeleteTopic), compares_versions=True)
    repeated = Script(tuple(itertools.chain(*blocks)))
    assert judge(repeated, tuple(itertools.chain(*responses)), judged).verdict is verdict


def test_the_first_wrong_step_is_named():
    wrong = (FINE[0], {"error": "INVALID_RECORD", "base_offset": -1}, FINE[2])
    found = judge(STEPS, wrong, judges("error", of=Produce))
    assert found.reason == "step 2, Produce: error was INVALID_RECORD, not NONE"


@pytest.mark.parametrize("created", [{"error": "POLICY_VIOLATION"}, {"error": "NONE", NOT_READY: "no leader for 15 s"}])
def test_a_script_without_its_topic_is_unknown(created):
    assert judge(STEPS, (created, *FINE[1:]), judges("error", of=Fetch)).verdict is Verdict.UNKNOWN


def test_a_topic_that_cannot_be_used_is_a_violation_if_leaders_are_judged():
    """Whatever is judged, the finding has the reason why the topic cannot be used."""
    created = {"error": "NONE", NOT_READY: "Metadata of broker 1 listed 1 of 2 partitions for 15 s"}
    found = judge(STEPS, (created, *FINE[1:]), judges("leaders", of=Metadata))
    shown = f"step 1, CreateTopic: {created[NOT_READY]}"
    assert (found.verdict, found.reason, found.actual) == (Verdict.VIOLATION, shown, shown)
    assert found.expected.startswith("step 1, CreateTopic: for each partition a leader that ")
    assert judge(STEPS, (created, *FINE[1:]), judges("error", of=Fetch)).reason == shown


REJECTED = Script((CreateTopic(), Produce(PRODUCE.batches, acks=2), PRODUCE, Fetch()))
REJECTION = {"error": "INVALID_REQUIRED_ACKS", "base_offset": -1}
ALL_JUDGED = judges("error", "base_offset", of=Produce) | judges("error", "records", "high_watermark", of=Fetch)


@pytest.mark.parametrize(
    ("rejection", "fetched", "worst", "also"),
    [
        (
            {"error": "INVALID_REQUIRED_ACKS", "base_offset": 0},
            CLOSED,
            "step 4, Fetch: connection",
            "base_offset was 0",
        ),
        (
            {"error": "INVALID_REQUIRED_ACKS", "base_offset": 0},
            {"error": "NONE", "high_watermark": 7},
            "step 4",
            "step 2",
        ),
        ({"error": "INVALID_RECORD", "base_offset": -1}, {"error": "NONE", "high_watermark": 7}, "step 4", "step 2"),
        (
            {"error": "NONE", "base_offset": 0},
            {"error": "NONE", "high_watermark": 2},
            "step 2, Produce: error",
            "step 4",
        ),
    ],
)
def test_the_worst_deviation_is_named_first_and_hides_no_other(rejection, fetched, worst, also):
    responses = (FINE[0], rejection, FINE[1], fetched)
    found = judge(REJECTED, responses, ALL_JUDGED)
    assert found.verdict is Verdict.VIOLATION
    first, _, others = found.reason.partition(" (also ")
    assert first.startswith(worst)
    assert also in others


def test_a_cosmetic_deviation_is_a_violation_only_of_a_requirement_about_it():
    responses = (FINE[0], REJECTION | {"base_offset": 0}, FINE[1], {"error": "NONE", "high_watermark": 1})
    assert judge(REJECTED, responses, ALL_JUDGED).verdict is Verdict.OK
    found = judge(REJECTED, responses, ALL_JUDGED, {Rank.COSMETIC})
    assert found.reason == "step 2, Produce: base_offset was 0, not -1"


def test_no_response_after_a_topic_that_was_not_created_is_a_violation():
    responses = ({"error": "POLICY_VIOLATION"}, FINE[1] | {"error": "UNKNOWN_SERVER_ERROR"}, CLOSED)
    found = judge(STEPS, responses, judges("error", of=Produce) | judges("error", of=Fetch))
    assert found.reason == "step 3, Fetch: connection was closed, not a response"


def test_creation_itself_may_be_judged():
    rejected = ({"error": "POLICY_VIOLATION"}, *FINE[1:])
    assert judge(STEPS, rejected, judges("error", of=CreateTopic)).verdict is Verdict.VIOLATION


# --- one target


def test_the_script_of_a_violation_is_minimal(broker):
    with TamperingProxy(broker, altered_responses("Fetch", loses_records)) as proxy:
        finding = check(READ_BACK, [proxy])[proxy.name]
    assert finding.verdict is Verdict.VIOLATION
    assert (
        "SCRIPT = Script((CreateTopic(), Produce((Batch((Record(None, timestamp_ms=1700000000000),)),)), Fetch()))"
        in (finding.program)
    )
    response, *wrong = finding.steps.partition("\n3. Fetch()\n")[2].splitlines()
    assert response.startswith("   error NONE")
    assert any(line.startswith("   ! records: expected offset") for line in wrong)


def test_a_violation_that_is_not_repeated_is_flaky(broker):
    fetches = itertools.count()

    def once(request, part):
        return loses_records(request, part) if next(fetches) == 0 else part

    with TamperingProxy(broker, altered_responses("Fetch", once)) as proxy:
        finding = check(READ_BACK, [proxy])[proxy.name]
    assert finding.verdict is Verdict.VIOLATION
    assert finding.flaky
    assert "SCRIPT = " in finding.program


def test_a_closed_connection_is_a_violation_and_opened_again(broker):
    def closes(request, forward):
        if api(request) == "Fetch":
            raise ConnectionError("enough")
        return forward(request)

    with TamperingProxy(broker, closes) as proxy:
        finding = check(READ_BACK, [proxy])[proxy.name]
        with Session(proxy, "again") as session:
            closed, created = session.run(Script((Fetch(), CreateTopic())))
    assert finding.verdict is Verdict.VIOLATION
    assert "connection was closed, not a response" in finding.reason
    assert closed == {"connection": "closed"}
    assert created["error"] == "NONE"


def test_a_response_that_cannot_be_decoded_is_a_violation(broker):
    with TamperingProxy(broker, altered_responses("Fetch", damages)) as proxy:
        finding = check(READ_BACK, [proxy])[proxy.name]
    assert "malformed" in finding.reason


def unreachable():
    return SimpleNamespace(transport=SOCKETS, name="unreachable", kind="unreachable", nodes=(Node(1, "127.0.0.1", 1),))


def test_a_target_that_is_gone_is_unknown():
    finding = check(READ_BACK, [unreachable()])["unreachable"]
    assert finding.verdict is Verdict.UNKNOWN
    assert "went down while script 1 ran" in finding.reason


def test_a_session_reports_that_its_target_is_gone():
    with Session(unreachable(), "x") as session, pytest.raises(TargetDown):
        session.run(Script((Metadata(),)))


def test_an_api_that_is_not_offered_is_not_applicable(broker):
    def without_fetch(request, forward):
        response = forward(request)
        if api(request) != "ApiVersions":
            return response
        return replace(response, api_keys=tuple(key for key in response.api_keys if key.api_key != 1))

    with TamperingProxy(broker, without_fetch) as proxy:
        finding = check(READ_BACK, [proxy])[proxy.name]
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert "does not offer Fetch" in finding.reason


def test_an_api_that_is_no_longer_offered_does_not_end_the_search_for_a_minimal_script(broker):
    fetches = []

    def loses_records_and_then_fetch(request, forward):
        response = forward(request)
        if api(request) == "Fetch":
            fetches.append(request)
            return altered(response, "responses.partitions", lambda part: loses_records(request, part))
        if api(request) == "ApiVersions" and fetches:
            return replace(response, api_keys=tuple(key for key in response.api_keys if key.api_key != 1))
        return response

    with TamperingProxy(broker, loses_records_and_then_fetch) as proxy:
        finding = check(READ_BACK, [proxy], revive=lambda _: True)[proxy.name]
    assert (finding.verdict, finding.flaky) == (Verdict.VIOLATION, True)


# --- several targets


def test_each_target_has_its_own_finding_for_the_same_scripts(broker):
    with TamperingProxy(broker, altered_responses("Fetch", loses_records)) as proxy:
        findings = check(READ_BACK, [broker, proxy])
    assert findings[broker.name].verdict is Verdict.OK
    assert findings[proxy.name].verdict is Verdict.VIOLATION
    assert findings[broker.name].scripts == 5


def test_a_difference_in_a_field_that_is_not_judged_is_only_recorded(broker):
    with TamperingProxy(
        broker, altered_responses("Fetch", lambda _, part: replace(part, high_watermark=part.high_watermark + 1))
    ) as proxy:
        finding = check(READ_BACK, [broker, proxy])[proxy.name]
    assert finding.verdict is Verdict.OK
    (difference,) = finding.differences
    assert (difference.severity, difference.other_target) == ("semantic", broker.name)


def test_not_controller_leads_to_a_lookup_of_the_controller_and_a_retry(broker):
    """Before KRaft, only the active controller creates topics."""
    lookups = []

    def rejects_before_lookup(request, forward):
        if api(request) == "Metadata" and not request.topics:
            lookups.append(request)
        if api(request) == "CreateTopics" and not lookups:
            return with_errors(forward(replace(request, validate_only=True)), ErrorCode.not_controller)
        return forward(request)

    with TamperingProxy(broker, rejects_before_lookup) as proxy:
        finding = check(READ_BACK, [proxy])[proxy.name]
    assert finding.verdict is Verdict.OK
    assert lookups


TWICE = sequential(
    script(CreateTopic(), InitProducerId(), *([st.just(Produce((Batch((Record(b"a"),), producer=0),)))] * 2)),
    judges("error", "log_append_time", of=Produce),
)
"""Check of the responses to a batch and its duplicate. For the latter, the model does not specify `log_append_time`."""


def inverts_the_time(part):
    return replace(part, log_append_time=None if part.log_append_time else dt.datetime(2024, 1, 1, tzinfo=dt.UTC))


def test_fields_without_an_expectation_are_compared_with_apache_kafka(broker):
    seen = itertools.count(1)

    def second_time(request, part):
        return inverts_the_time(part) if next(seen) % 2 == 0 else part

    with TamperingProxy(broker, altered_responses("Produce", second_time)) as proxy:
        authority = Renamed(broker, "apache-kafka:4.3.1", "apache-kafka")
        against_kafka = check(TWICE, [proxy, authority], scripts_max=1)
        against_another = check(TWICE, [proxy, Renamed(broker, "other", "other")], scripts_max=1)
    assert against_kafka[proxy.name].verdict is Verdict.VIOLATION
    assert against_kafka[proxy.name].reason.startswith("step 4, Produce: log_append_time ")
    assert against_kafka[proxy.name].reason.endswith(" on apache-kafka:4.3.1")
    assert against_kafka[proxy.name].beside == authority.name
    assert against_kafka[authority.name].verdict is Verdict.OK
    assert against_another[proxy.name].verdict is Verdict.OK


# --- sessions


def test_scripts_do_not_see_each_other(broker):
    value = Script((CreateTopic(), PRODUCE, ListOffsets(), Metadata(None)))
    with Session(broker, "alone") as session:
        first, second = session.run(value), session.run(value)
    assert first == second
    assert first[2]["offset"] == 1


def test_pipelined_requests_are_all_sent_before_a_response_is_read(broker):
    with Session(broker, "pipe") as session:
        _, pipelined = session.run(Script((CreateTopic(), Pipelined((PRODUCE, PRODUCE, Fetch())))))
    assert pipelined["in_order"]
    assert [len(one.get("records", ())) for one in pipelined["responses"]] == [0, 0, 2]


def test_bytes_are_sent_on_a_separate_connection(broker):
    with Session(broker, "bytes") as session:
        hostile, metadata = session.run(Script((RawBytes(b"\xff\xff\xff\xff"), Metadata(()))))
    assert hostile == {"connection": "closed", "broker": "alive"}
    assert metadata["every_broker"]


@pytest.mark.parametrize(
    ("times", "verdict", "reason"),
    [
        (1_000, Verdict.VIOLATION, "the broker went down, each time that the script ran: "),
        (1, Verdict.UNKNOWN, "went down while script 1 ran: "),
    ],
)
def test_a_request_that_ends_the_broker_is_a_violation_if_it_does_so_again(broker, times, verdict, reason):
    target = Fragile(broker, times)
    try:
        finding = check(READ_BACK, [target], revive=target.revive)[target.name]
    finally:
        target.stop()
    assert finding.verdict is verdict
    assert finding.reason.startswith(reason)
    assert not finding.flaky
    assert "Fetch" in finding.program


class DyingSlowly:
    """A node that closes the connection after malformed bytes, and ends 50 ms later."""

    def __init__(self, broker):
        self.broker, self.listener = broker, socket.create_server(("127.0.0.1", 0))
        self.kind = self.name = "dying-slowly"
        self.transport, self.nodes = SOCKETS, (Node(1, *self.listener.getsockname()),)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._connect, args=(connection,), daemon=True).start()

    def _connect(self, connection):
        (node,) = self.broker.nodes
        with connection, socket.create_connection((node.host, node.port)) as upstream, suppress(OSError):
            while received := connection.recv(65_536):
                if received.startswith(b"\xff"):
                    threading.Timer(0.05, self.stop).start()
                    return
                upstream.sendall(received)
                connection.sendall(upstream.recv(65_536))

    def stop(self):
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_a_broker_that_ends_soon_after_it_closed_the_connection_went_down(broker):
    target = DyingSlowly(broker)
    with Session(target, "crash") as session, pytest.raises(TargetDown):
        session.run(Script((RawBytes(b"\xff\xff\xff\xff"),)))


def test_a_target_that_stays_down_is_unknown(broker):
    target = Fragile(broker, 1)
    finding = check(READ_BACK, [target], revive=lambda target: False)[target.name]
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.reason.startswith("went down while script 1 ran: ")


# --- a request that fails in every script is a violation of one requirement only


def closes_fetches(request, forward):
    if api(request) == "Fetch":
        raise ConnectionError("enough")
    return forward(request)


def fails_fetches(_request, part):
    return replace(part, error_code=ErrorCode.unknown_server_error, records=b"")


@pytest.mark.parametrize(
    ("tampering", "observed"),
    [
        (closes_fetches, "connection was closed"),
        (altered_responses("Fetch", fails_fetches), "error was UNKNOWN_SERVER_ERROR"),
    ],
)
def test_a_plain_request_that_fails_is_one_violation_and_blocks_the_others(broker, tampering, observed):
    failures = {}
    with TamperingProxy(broker, tampering) as proxy:
        first = check(READ_BACK, [proxy], basic_failures=failures)[proxy.name]
        second = check(READ_BACK, [proxy], basic_failures=failures, requirement_id="area/other")[proxy.name]
    assert first.verdict is Verdict.VIOLATION
    assert observed in first.reason
    assert second.verdict is Verdict.UNKNOWN
    assert second.reason.startswith("blocked by area/words, since a plain Fetch fails in the same way: step ")
    assert observed in second.reason
    assert "SCRIPT = " in second.program


def test_a_request_that_fails_for_another_reason_is_not_blocked(broker):
    def rejects_the_second(request, part):
        return fails_fetches(request, part) if request.topics[0].partitions[0].fetch_offset else part

    second = sequential(script(CreateTopic(), produces(), Fetch(1)), judges("error", of=Fetch))
    failures = {}
    with TamperingProxy(broker, altered_responses("Fetch", rejects_the_second)) as proxy:
        found = [check(second, [proxy], basic_failures=failures, requirement_id=name) for name in ("area/a", "area/b")]
    assert [each[proxy.name].verdict for each in found] == [Verdict.VIOLATION] * 2
    assert failures == {}


@pytest.fixture
def paused():
    """Yield a target like a node after SIGSTOP: the kernel accepts connections, but no request has a response."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    yield SimpleNamespace(transport=SOCKETS, name="paused", kind="paused", nodes=(Node(1, "127.0.0.1", port),))
    listener.close()


def test_a_paused_broker_is_unknown(paused, monkeypatch):
    monkeypatch.setattr(connections, "RESPONSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(timeouts, "READY_TIMEOUT_S", 0.1)
    for checked in (READ_BACK, sequential(script(RawBytes(b"\xff" * 4)), judges("connection", of=RawBytes))):
        finding = check(checked, [paused], revive=lambda target: False)["paused"]
        assert finding.verdict is Verdict.UNKNOWN
        assert finding.reason.startswith("went down while script 1 ran: ")


# --- topics of a script are deleted at its end


def topics_of(broker, unique):
    """Return the topics of the broker whose names contain `unique`, the name of a session."""
    (node,) = broker.nodes
    with RawClient(node.host, node.port) as client:
        schema = client.schema_for(ApiKey.METADATA, 12)
        response = client.request(build(schema.MetadataRequest, {"topics": None, **NO_OPERATIONS_REQUESTED}))
    return [topic.name for topic in response.topics if unique in topic.name]


NO_OPERATIONS_REQUESTED = {
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


def test_a_run_that_fails_leaves_no_topic(broker):
    target = Fragile(broker, 1)
    try:
        with Session(target, "left-by-failure") as session:
            with pytest.raises(TargetDown):
                session.run(Script((CreateTopic(), CreateTopic("trial-two"), PRODUCE, Fetch())))
            assert len(topics_of(broker, "left-by-failure")) == 2
            target.revive(target)
    finally:
        target.stop()
    assert topics_of(broker, "left-by-failure") == []


def test_a_topic_whose_creation_had_no_response_is_deleted(broker):
    def loses_the_response(request, forward):
        response = forward(request)
        if api(request) == "CreateTopics":
            raise ConnectionError("lost")
        return response

    with TamperingProxy(broker, loses_the_response) as proxy, Session(proxy, "without-response") as session:
        assert session.run(Script((CreateTopic(),))) == (CLOSED,)
    assert topics_of(broker, "without-response") == []
