"""Rules for the fields of a response: an invalid value is reported by name, and a valid response has no finding.

Method: kio responses with one element in each array; each test case alters one field.
"""

import datetime as dt
from dataclasses import replace

import pytest
from kio.index import load_payload_module
from kio.static.constants import EntityType

from conformance.sequential.check import judges
from conformance.sequential.field_rules import invalid_fields
from conformance.sequential.judging import judge
from conformance.sequential.raw_responses import raw_response
from conformance.sequential.response import INVALID_FIELDS, NO_OPERATIONS
from conformance.sequential.steps import ApiKey, RawRequest, Script
from conformance.sequential.symbols import ScriptSymbols
from fixtures.targets.target import Node
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import altered, blank

BROKERS = (Node(1, "127.0.0.1", 9092), Node(2, "127.0.0.2", 9092))
UNKNOWN = 77
_TOPIC = {"name": "trial-run", "topic_authorized_operations": NO_OPERATIONS}


def kinds(key, version):
    return vars(load_payload_module(key, version, EntityType.response))


def metadata(**partition):
    """Return a Metadata response with one partition of the script's topic."""
    response = blank(kinds(ApiKey.METADATA, 12)["MetadataResponse"])
    described = {"leader_id": 1, "replica_nodes": (1, 2), "isr_nodes": (1, 2), "offline_replicas": ()}
    response = altered(response, "topics.partitions", lambda part: replace(part, **described | partition))
    response = altered(response, "topics", lambda topic: replace(topic, **_TOPIC))
    broker = replace(response.brokers[0], node_id=1, host="127.0.0.1", port=9092)
    return replace(response, brokers=(broker,), controller_id=1)


def paged(**partition):
    response = blank(kinds(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0)["DescribeTopicPartitionsResponse"])
    described = {"leader_id": 1, "replica_nodes": (1, 2), "isr_nodes": (1,), "eligible_leader_replicas": (2,)}
    response = altered(response, "topics.partitions", lambda part: replace(part, **described | partition))
    return altered(response, "topics", lambda topic: replace(topic, **_TOPIC))


def fetched(**partition):
    response = blank(kinds(ApiKey.FETCH, 12)["FetchResponse"])
    valid = {"preferred_read_replica": -1, "diverging_epoch": epoch(-1, -1), "snapshot_id": snapshot(-1, -1)}
    valid["current_leader"] = kinds(ApiKey.FETCH, 12)["LeaderIdAndEpoch"](leader_id=-1, leader_epoch=-1)
    return altered(response, "responses.partitions", lambda part: replace(part, **valid | partition))


def epoch(number, end):
    return kinds(ApiKey.FETCH, 12)["EpochEndOffset"](epoch=number, end_offset=end)


def snapshot(number, end):
    return kinds(ApiKey.FETCH, 12)["SnapshotId"](epoch=number, end_offset=end)


def described(**config):
    """Return a DescribeConfigs response with one setting of a topic."""
    response = blank(kinds(ApiKey.DESCRIBE_CONFIGS, 4)["DescribeConfigsResponse"])
    valid = {"name": "retention.ms", "value": "1000", "config_type": 5, "read_only": False, "is_sensitive": False}
    response = altered(response, "results.configs", lambda each: replace(each, **valid | config))
    return altered(response, "results", lambda each: replace(each, resource_type=2))


def log_directory():
    (directory,) = blank(kinds(ApiKey.DESCRIBE_LOG_DIRS, 4)["DescribeLogDirsResponse"]).results
    return replace(directory, log_dir="/data")


def coordinator(**fields):
    valid = {"node_id": 2, "host": "127.0.0.2", "port": 9092}
    return replace(blank(kinds(ApiKey.FIND_COORDINATOR, 3)["FindCoordinatorResponse"]), **valid | fields)


def found(response, **request):
    return invalid_fields(request, response, ScriptSymbols("run", BROKERS))


ABORTED = kinds(ApiKey.FETCH, 12)["AbortedTransaction"](producer_id=7, first_offset=0)


@pytest.mark.parametrize(
    "response",
    [
        metadata(),
        metadata(leader_id=-1, isr_nodes=(2,), offline_replicas=(1,)),
        paged(),
        fetched(),
        described(),
        described(value=None),
        described(value="true", config_type=1),
        described(value="0.5", config_type=6),
        described(value="any", config_type=2),
        described(value=None, config_type=9, is_sensitive=True),
        coordinator(),
        replace(log_directory(), total_bytes=7, usable_bytes=7),
        replace(log_directory(), total_bytes=-1, usable_bytes=-1),
    ],
    ids=repr,
)
def test_valid_responses_have_no_invalid_field(response):
    assert found(response) == ()


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (replace(metadata(), throttle_time=dt.timedelta(milliseconds=-1)), "throttle_time_ms -1"),
        (replace(metadata(), controller_id=UNKNOWN), "controller_id 77, which is no broker"),
        (replace(log_directory(), usable_bytes=8, total_bytes=7), "usable_bytes 8 of total_bytes 7"),
        (replace(log_directory(), log_dir=""), "log_dir ''"),
        (replace(log_directory(), total_bytes=-2, usable_bytes=-2), "total_bytes -2"),
        (metadata(isr_nodes=(1, UNKNOWN)), "isr_nodes 77, which is no broker"),
        (metadata(replica_nodes=(1, 2, 2)), "replica_nodes (1, 2, 2), of which one is repeated"),
        (metadata(leader_id=2, isr_nodes=(1,)), "leader_id 2, which is not in isr_nodes"),
        (metadata(replica_nodes=(1,)), "isr_nodes [2], which are not in replica_nodes"),
        (metadata(replica_nodes=(1,), isr_nodes=(1,), offline_replicas=(2,)), "offline_replicas [2], which are not"),
        (paged(eligible_leader_replicas=(1,)), "eligible_leader_replicas [1], which are in isr_nodes"),
        (paged(last_known_elr=(UNKNOWN,)), "last_known_elr 77, which is no broker"),
        (replace(fetched(), session_id=7), "session_id 7 without a session"),
        (fetched(preferred_read_replica=2), "preferred_read_replica 2 without a rack"),
        (fetched(aborted_transactions=(ABORTED,)), "aborted_transactions for uncommitted reads"),
        (fetched(diverging_epoch=epoch(0, 5)), "diverging_epoch 0 to 5 for a consumer"),
        (fetched(snapshot_id=snapshot(0, 5)), "snapshot_id 0 to 5 for a consumer"),
        (described(value="soon"), "retention.ms = soon with config_type 5"),
        (described(value="yes", config_type=1), "retention.ms = yes with config_type 1"),
        (described(value="much", config_type=6), "retention.ms = much with config_type 6"),
        (described(read_only=True), "retention.ms of a topic with read_only"),
        (described(is_sensitive=True), "retention.ms, which is_sensitive, with its value"),
        (described(config_type=9), "retention.ms, which is_sensitive, with its value"),
        (coordinator(port=9093), "address 127.0.0.2:9093 of broker 2"),
        (coordinator(node_id=UNKNOWN), "node_id 77, which is no broker"),
    ],
    ids=str,
)
def test_an_invalid_field_is_named(response, expected):
    assert found(response)[0].startswith(expected)


def test_replicas_of_other_topics_may_be_on_brokers_that_are_down():
    response = altered(metadata(isr_nodes=(1, UNKNOWN)), "topics", lambda topic: replace(topic, name="orders"))
    assert found(response) == ()


def test_sessions_and_committed_reads_have_their_fields():
    assert found(replace(fetched(), session_id=7), session_id=7) == ()
    assert found(fetched(aborted_transactions=(ABORTED,)), isolation_level=1) == ()


@pytest.mark.parametrize(("judged", "verdict"), [("errors", Verdict.OK), (INVALID_FIELDS, Verdict.VIOLATION)])
def test_invalid_fields_are_a_violation_where_they_are_judged(judged, verdict):
    step = RawRequest(ApiKey.METADATA, {}, (), distinct=True)
    response = raw_response(step, replace(metadata(), controller_id=UNKNOWN), ScriptSymbols("run", BROKERS))
    finding = judge(Script((step,)), [response], judges(judged, of=RawRequest))
    assert finding.verdict is verdict
    assert ("controller_id 77" in finding.reason) is (verdict is Verdict.VIOLATION)
