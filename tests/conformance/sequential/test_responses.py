"""Requests in every version, and responses that mean the same in every version."""

import datetime as dt
import uuid
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from conformance.sequential import requests
from conformance.sequential.admin_responses import placement
from conformance.sequential.group_responses import listed_groups
from conformance.sequential.requests import build
from conformance.sequential.response import NO_OPERATIONS, ReadRecord
from conformance.sequential.responses import normalise
from conformance.sequential.steps import (
    AlterConfigs,
    AlterReassignment,
    Batch,
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DeleteTopicById,
    DescribeCluster,
    DescribeConfigs,
    DescribeGroup,
    DescribeLogDirs,
    DescribeProducers,
    DescribeQuorum,
    DescribeTopicPartitions,
    ElectLeaders,
    Fetch,
    Flaw,
    Heartbeat,
    IncrementalAlterConfigs,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    ListedGroups,
    ListGroups,
    ListOffsets,
    ListReassignments,
    ListTransactions,
    Metadata,
    MetadataById,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Operation,
    Produce,
    Record,
    SessionFetch,
    SyncGroup,
)
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.messages import ApiKey, known_versions, request_schema
from fixtures.clients.raw import encode_request
from fixtures.clients.record_batch import MalformedBatch, RecordBatch, TimestampType, decode_batches, encode_batch
from fixtures.clients.topic_ids import topic_id_text
from fixtures.targets.target import Node

STEPS = [
    Produce((Batch((Record(b"a"),)),)),
    Fetch(3, leader_epoch=1),
    ListOffsets(),
    OffsetForLeaderEpoch(1),
    DeleteRecords(2),
    InitProducerId(),
    CreateTopic(),
    DeleteTopic(),
    Metadata(),
    OffsetCommit(5, metadata="m"),
    OffsetFetch(),
    JoinGroup("m"),
    SyncGroup("m"),
    Heartbeat("m"),
    LeaveGroup("m"),
    DescribeGroup(),
    ListGroups(),
    OffsetDelete(),
    CreatePartitions(2, assignments=((1,),)),
    AlterReassignment((1,)),
    AlterReassignment(None),
    ListReassignments(),
    ElectLeaders(),
    IncrementalAlterConfigs((("retention.ms", Operation.SET, "-1"),)),
    AlterConfigs((("retention.ms", "-1"),)),
    DescribeConfigs(("retention.ms",)),
    DescribeTopicPartitions(cursor=("trial", 1)),
    DescribeLogDirs(),
    DescribeQuorum("trial"),
    DescribeCluster(),
]
UNIQUE = "run-1"
NAME = f"trial-{UNIQUE}"
TOPIC_ID = uuid.UUID(int=77)


def kinds(steps):
    return [type(step).__name__ for step in steps]


@pytest.mark.parametrize(
    "step", [*STEPS, Metadata(None), DescribeProducers(), ListTransactions()], ids=lambda step: repr(step)[:40]
)
def test_every_version_of_a_request_can_be_written(step):
    key = requests.api_key(step)
    for version in known_versions(key):
        if isinstance(step, Metadata) and step.topics is None and version == 0:
            continue  # version 0 has no null list; its empty list requests all topics
        message = requests.request(step, request_schema(key, version), ScriptSymbols(UNIQUE))
        assert message.__version__ == version
        assert encode_request(message, 1, "test")


def test_topics_by_id_need_version_12_of_metadata():
    schema = request_schema(3, 12)
    symbols = ScriptSymbols(UNIQUE)
    symbols.saw_topic_id("trial", TOPIC_ID)
    (topic,) = requests.request(MetadataById(0), schema, symbols).topics
    assert (topic.name, topic.topic_id) == (None, TOPIC_ID)


# --- responses

RECORDS = encode_batch(
    RecordBatch((Record(b"v", b"k", 5, (("h", None),)), Record(None, timestamp_ms=6)), base_offset=3)
)
CODE = ErrorCode.none
PARTITION = {
    "index": 0,
    "partition_index": 0,
    "partition": 0,
    "error_code": CODE,
    "base_offset": 3,
    "log_append_time": None,
    "log_start_offset": 1,
    "record_errors": (),
    "high_watermark": 5,
    "last_stable_offset": 5,
    "aborted_transactions": (),
    "records": RECORDS,
    "offset": 4,
    "timestamp": 6,
    "leader_epoch": 0,
    "end_offset": 5,
    "low_watermark": 2,
    "committed_offset": 5,
    "committed_leader_epoch": 0,
    "metadata": "m",
    "leader_id": 1,
    "replica_nodes": (1,),
    "isr_nodes": (1,),
    "offline_replicas": (),
    "eligible_leader_replicas": (),
    "last_known_elr": (),
    "error_message": None,
    "partition_id": 0,
    "replicas": (1,),
    "adding_replicas": (),
    "removing_replicas": (),
    "partition_size": 100,
    "offset_lag": 0,
    "is_future_key": False,
    "current_voters": [{"replica_id": 1, "replica_directory_id": TOPIC_ID, "log_end_offset": 5}],
    "observers": [],
    "active_producers": [
        {
            "producer_id": 4711,
            "producer_epoch": 0,
            "last_sequence": 1,
            "last_timestamp": 6,
            "coordinator_epoch": -1,
            "current_txn_start_offset": -1,
        }
    ],
}
CONFIG = {
    "name": "retention.ms",
    "value": "-1",
    "read_only": False,
    "is_sensitive": False,
    "config_source": 1,
    "synonyms": [{"name": "retention.ms", "value": "-1", "source": 1}],
    "documentation": None,
}
TOPIC = {
    "name": NAME,
    "topic": NAME,
    "topic_id": TOPIC_ID,
    "error_code": CODE,
    "error_message": None,
    "num_partitions": 1,
    "replication_factor": 1,
    "configs": [CONFIG],
    "topic_name": NAME,
    "resource_type": 2,
    "resource_name": NAME,
    "partition_result": [PARTITION],
    "partition_responses": [PARTITION],
    "partitions": [PARTITION],
    "topic_authorized_operations": NO_OPERATIONS,
}
GROUP = {
    "group_id": NAME,
    "topics": [TOPIC],
    "error_code": CODE,
    "error_message": None,
    "group_state": "Stable",
    "group_type": "classic",
    "protocol_type": "kafkatrial",
    "protocol_data": "range",
    "members": [
        {
            "member_id": "m",
            "group_instance_id": f"trial-instance-{UNIQUE}",
            "client_id": "kafkatrial",
            "client_host": "/10.11.12.13",
            "member_metadata": b"",
            "member_assignment": b"",
        }
    ],
    "authorized_operations": NO_OPERATIONS,
}
BROKER = {"node_id": 1, "broker_id": 1, "is_fenced": False, "host": "secret.example", "port": 9092}
RESPONSE = {
    "throttle_time": dt.timedelta(milliseconds=17),
    "error_code": CODE,
    "session_id": 1234,
    "responses": [TOPIC],
    "topics": [TOPIC],
    "groups": [GROUP],
    "producer_id": 4711,
    "producer_epoch": 0,
    "brokers": [BROKER],
    "controller_id": 1,
    "cluster_id": "c",
    "cluster_authorized_operations": NO_OPERATIONS,
    "error_message": None,
    "results": [{**TOPIC, "log_dir": "/secret", "topics": [TOPIC]}],
    "replica_election_results": [TOPIC],
    "nodes": [{"node_id": 1, "listeners": []}],
    "next_cursor": None,
    "member_id": "m",
    "leader": "m",
    "generation_id": 1,
    "members": [{"member_id": "m", "group_instance_id": None, "metadata": b"", "error_code": CODE}],
    "skip_assignment": False,
    "protocol_type": "kafkatrial",
    "protocol_name": "range",
    "assignment": b"",
}


SYMBOLS = ScriptSymbols(UNIQUE)
SYMBOLS.saw_topic_id("trial", TOPIC_ID)


def response(step, version, **changes):
    module = load_payload_module(requests.api_key(step), version, EntityType.response)
    message = next(
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and getattr(kind, "__type__", None) is EntityType.response
    )
    known = {item.name for item in fields(message)}
    return build(message, {name: value for name, value in {**RESPONSE, **changes}.items() if name in known})


@pytest.mark.parametrize("step", STEPS, ids=kinds(STEPS))
def test_one_response_in_every_version(step):
    """Goal: versions of one response are comparable. Method: the same content in each; shared fields must agree."""
    responses = [
        normalise(step, response(step, v), ScriptSymbols(UNIQUE)) for v in known_versions(requests.api_key(step))
    ]
    newest = responses[-1]
    for each in responses:
        assert not {"connection", "malformed"} & each.keys()
        assert all(each[name] == newest[name] for name in each.keys() & newest.keys())


def replaced(value, changes):
    """Return a copy of a response in which these fields have other values, at every depth."""
    if isinstance(value, dict):
        return {name: changes.get(name, replaced(inner, changes)) for name, inner in value.items()}
    return [replaced(inner, changes) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("step", STEPS, ids=kinds(STEPS))
def test_values_that_differ_between_runs_are_not_compared(step):
    others = {
        "throttle_time": dt.timedelta(milliseconds=18),
        "session_id": 1235,
        "topic_id": uuid.UUID(int=78),
        "producer_id": 4712,
        "cluster_id": "d",
        "host": "other.example",
        "port": 9093,
        "log_dir": "/other",
    }
    version = known_versions(requests.api_key(step))[-1]
    found = [
        normalise(step, response(step, version, **replaced(RESPONSE, changes)), ScriptSymbols(UNIQUE))
        for changes in ({}, others)
    ]
    assert found[0] == found[1]
    for secret in ("17", "1234", "secret", "9092", UNIQUE):
        assert secret not in repr(found[0])


def test_producers_are_described_by_symbol():
    symbols = ScriptSymbols(UNIQUE)
    described = response(DescribeProducers(), 0)
    unknown = normalise(DescribeProducers(), described, symbols)
    symbols.saw_producer_id(4711)
    known = normalise(DescribeProducers(), described, symbols)
    assert [each["producers"] for each in (unknown, known)] == [((4711, 0, 1, 6, -1),), ((0, 0, 1, 6, -1),)]


def test_ids_are_compared_by_symbol_and_shown_as_returned():
    symbols = ScriptSymbols(UNIQUE)
    first, second = (
        normalise(InitProducerId(), response(InitProducerId(), 4, producer_id=id_), symbols) for id_ in (4711, 90)
    )
    assert (first["producer"], second["producer"]) == (0, 1)
    assert (str(first["producer"]), repr(second["producer"])) == ("0 (4711)", "1 (90)")
    described = normalise(Metadata(), response(Metadata(), 12), symbols)
    assert described["topic_ids"] == (("trial", 0),)
    assert repr(described["topic_ids"]) == f"(('trial', 0 ({topic_id_text(TOPIC_ID)})),)"
    assert str(described["cluster_id"]) == "0 (c)"


def test_members_are_compared_by_symbol():
    symbols = ScriptSymbols(UNIQUE)
    required = response(JoinGroup(), 9, error_code=ErrorCode.member_id_required, leader="", members=())
    assert normalise(JoinGroup(), required, symbols) == {"error": "MEMBER_ID_REQUIRED", "member": 0}
    assert [symbols.member_id(member) for member in (0, 1, "other", "")] == ["m", "unknown", "other", ""]
    joined = normalise(JoinGroup(0), response(JoinGroup(), 9, leader="another"), symbols)
    assert (joined["member"], joined["leader"], joined["members"]) == (0, 1, ((0, b""),))
    assert str(joined["leader"]) == "1 (another)"
    assert requests.request(Heartbeat(0), request_schema(12, 4), symbols).member_id == "m"


@pytest.mark.parametrize("left", [[], [("other", None)], [("m", None), ("m", None)], [("m", "i")]])
def test_a_response_about_other_members_than_the_one_that_leaves_is_malformed(left):
    members = [{"member_id": id_, "group_instance_id": instance, "error_code": CODE} for id_, instance in left]
    found = normalise(LeaveGroup("m"), response(LeaveGroup("m"), 5, members=members), ScriptSymbols(UNIQUE))
    assert found.keys() == {"malformed"}


def described(**changes):
    (member,) = GROUP["members"]
    group = {**GROUP, "members": [{**member, **changes}], **{n: v for n, v in changes.items() if n in GROUP}}
    return normalise(DescribeGroup(), response(DescribeGroup(), 6, groups=[group]), ScriptSymbols(UNIQUE))


def test_a_member_is_described_with_its_client_and_its_instance():
    assert (described()["clients"], described()["instances"]) == ((("kafkatrial", True),), ("trial-instance",))
    assert described(group_instance_id=None)["instances"] == (None,)
    assert described(group_instance_id="other")["instances"] == ("other",)
    for host, is_address in (("localhost/127.0.0.1", True), ("::1", True), ("localhost", False), ("", False)):
        assert described(client_host=host)["clients"] == (("kafkatrial", is_address),)


def test_operations_of_a_group_include_describe():
    found = [described(authorized_operations=bits)["operations"] for bits in (NO_OPERATIONS, 1 << 8, 0)]
    assert found == [False, True, "0, without DESCRIBE"]


@pytest.mark.parametrize(("step", "since"), [(ListGroups(states=("Empty",)), 4), (ListGroups(types=("classic",)), 5)])
def test_a_filter_is_judged_in_the_versions_that_have_it(step, since):
    found = [version for version in known_versions(16) if "listed" in normalised(step, version)]
    assert found == [*range(since, 6)]


def normalised(step, version):
    return normalise(step, response(step, version), ScriptSymbols(UNIQUE))


def test_a_broker_that_lists_a_group_must_describe_it():
    listed = [response(ListGroups(), version, groups=[GROUP]) for version in (4, 5)]
    other = response(ListGroups(), 5, groups=[{**GROUP, "group_id": "other", "group_type": "consumer"}])
    there = response(DescribeGroup(), 5, groups=[GROUP])
    dead = response(DescribeGroup(), 5, groups=[{**GROUP, "group_state": "Dead"}])
    elsewhere = response(DescribeGroup(), 5, groups=[{**GROUP, "error_code": ErrorCode.not_coordinator}])
    nothing = response(DescribeGroup(), 5, groups=[])
    for returned, entries, missing in (
        ([(listed[0], there), (other, nothing)], 1, ()),
        ([(listed[0], there), (listed[1], elsewhere)], 2, (NAME,)),
        ([(listed[1], dead)], 1, (NAME,)),
        ([(listed[1], nothing)], 1, (NAME,)),
    ):
        found = listed_groups(ListedGroups(), returned, ScriptSymbols(UNIQUE))
        twice = (NAME,) if entries > 1 else ()
        assert found == {"error": "NONE", "listed": entries, "listed_twice": twice, "not_described": missing}


def test_every_broker_is_a_voter_or_an_observer():
    symbols = ScriptSymbols(UNIQUE, [Node(1, "a", 1), Node(2, "b", 2)])
    for observers, every_broker in (([], False), ([2], True), ([2, 9], True)):
        states = [{"replica_id": id_, "replica_directory_id": TOPIC_ID, "log_end_offset": 5} for id_ in observers]
        partition = {**PARTITION, "observers": states}
        described = response(DescribeQuorum("trial"), 2, topics=[{**TOPIC, "partitions": [partition]}])
        found = normalise(DescribeQuorum("trial"), described, symbols)
        assert (found["every_broker"], found["nodes_vote"], found["listed_twice"]) == (every_broker, True, ())


def deleted(step, **changes):
    return normalise(step, response(step, 6, responses=[{**TOPIC, **changes}]), SYMBOLS)


def test_a_response_about_another_topic_than_the_deleted_one_is_malformed():
    assert deleted(DeleteTopic()) == deleted(DeleteTopic(), topic_id=uuid.UUID(int=0)) == {"error": "NONE"}
    assert deleted(DeleteTopicById(0)) == deleted(DeleteTopicById(0), name=None) == {"error": "NONE"}
    for step in (DeleteTopic(), DeleteTopicById(0)):
        for changes in ({"name": "other"}, {"topic_id": uuid.UUID(int=78)}):
            assert deleted(step, **changes).keys() == {"malformed"}


def fetched(*batches, high_watermark=1):
    partition = {
        **PARTITION,
        "records": b"".join(map(encode_batch, batches)),
        "log_start_offset": 0,
        "high_watermark": high_watermark,
    }
    return response(Fetch(), 12, responses=[{**TOPIC, "partitions": [partition]}])


def test_the_maximum_timestamp_of_a_batch_is_compared_with_its_records():
    batch = RecordBatch((Record(b"v", timestamp_ms=6), Record(b"w", timestamp_ms=5)))
    texts = {
        None: "of the newest records",
        7: "others (at offset 0, the batch has 7, its newest record 6)",
        5: "others (at offset 0, the batch has 5, its newest record 6)",
    }
    for timestamp_ms, text in texts.items():
        found = normalise(Fetch(), fetched(replace(batch, max_timestamp_ms=timestamp_ms)), ScriptSymbols(UNIQUE))
        assert str(found["max_timestamps"]) == text
    set_by_broker = replace(batch, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=9)
    emptied = replace(batch, records=(), max_timestamp_ms=9)
    found = normalise(Fetch(), fetched(set_by_broker, emptied), ScriptSymbols(UNIQUE))
    assert found["max_timestamps"] == "of the newest records"


def test_the_size_of_a_replica_is_compared_with_that_of_the_whole_log():
    batch = RecordBatch((Record(b"v"),))
    size = len(encode_batch(batch))
    for offset, high_watermark, described, text in (
        (0, 1, size, "as fetched"),
        (0, 1, size + 100, f"another (Fetch returned {size} bytes, DescribeLogDirs {size + 100})"),
        (0, 2, size + 100, None),
        (1, 2, size + 100, None),
    ):
        symbols = ScriptSymbols(UNIQUE)
        normalise(Fetch(), fetched(replace(batch, base_offset=offset), high_watermark=high_watermark), symbols)
        results = replaced(RESPONSE["results"], {"partition_size": described})
        found = normalise(DescribeLogDirs(), response(DescribeLogDirs(), 1, results=results), symbols)
        assert (str(found["size"]) if "size" in found else None) == text


def test_errors_are_spelt_as_kafka_spells_them():
    topic = {**TOPIC, "partitions": [{**PARTITION, "error_code": ErrorCode.not_leader_or_follower, "records": b""}]}
    found = normalise(Fetch(), response(Fetch(), 12, responses=[topic]), ScriptSymbols(UNIQUE))
    assert found["error"] == "NOT_LEADER_OR_FOLLOWER"


def test_records_are_decoded():
    found = normalise(Fetch(), response(Fetch(), 12), ScriptSymbols(UNIQUE))
    assert found["records"] == (ReadRecord(3, b"v", b"k", 5, (("h", None),)), ReadRecord(4, None, None, 6))


def test_the_brokers_own_time_is_not_compared():
    batch = RecordBatch((Record(b"v", timestamp_ms=99),), timestamp_type=TimestampType.LOG_APPEND_TIME)
    topic = {**TOPIC, "partitions": [{**PARTITION, "records": encode_batch(batch)}]}
    found = normalise(Fetch(), response(Fetch(), 12, responses=[topic]), ScriptSymbols(UNIQUE))
    assert found["records"] == (ReadRecord(0, b"v", None, None),)


@pytest.mark.parametrize("topics", [[], [TOPIC, TOPIC]])
def test_a_response_with_other_partitions_is_malformed(topics):
    found = normalise(Fetch(), response(Fetch(), 12, responses=topics), ScriptSymbols(UNIQUE))
    assert found.keys() == {"malformed"}


OF_ONE_PARTITION = [
    step for step in STEPS if hasattr(step, "partition") and not isinstance(step, ListReassignments | DescribeLogDirs)
]


@pytest.mark.parametrize("step", OF_ONE_PARTITION, ids=kinds(OF_ONE_PARTITION))
def test_a_response_for_another_partition_or_topic_is_malformed(step):
    """The responses have partition 0 of the topic `trial`; the steps request another partition or topic."""
    symbols = ScriptSymbols(UNIQUE)
    symbols.saw_topic_id("trial-other", uuid.UUID(int=78))
    for version in known_versions(requests.api_key(step)):
        for requested in (replace(step, partition=1), replace(step, topic="trial-other")):
            found = normalise(requested, response(step, version), symbols)
            assert found.keys() == {"malformed"}, (version, requested)


@pytest.mark.parametrize(("topic", "is_malformed"), [("trial", False), ("trial-other", True)])
def test_a_response_in_a_fetch_session_about_another_topic_is_malformed(topic, is_malformed):
    symbols = ScriptSymbols(UNIQUE)
    symbols.saw_topic_id("trial", TOPIC_ID)
    symbols.saw_topic_id("trial-other", uuid.UUID(int=78))
    for version in known_versions(ApiKey.FETCH):
        found = normalise(SessionFetch(topic=topic), response(Fetch(), version, error_code=ErrorCode.none), symbols)
        assert ("malformed" in found) is is_malformed, version


def test_the_name_of_a_topic_may_be_empty():
    """A broker may wrongly create such a topic, and a ListOffsets response identifies it only by this empty name."""
    symbols = ScriptSymbols(UNIQUE)
    symbols.saw_topic_id("", TOPIC_ID)
    listed = {**PARTITION, "error_code": ErrorCode.none, "partition_index": 0}
    for version in known_versions(requests.api_key(ListOffsets())):
        found = normalise(
            ListOffsets(topic=""),
            response(ListOffsets(), version, topics=[{"name": "", "partitions": [listed]}]),
            symbols,
        )
        assert found["error"] == "NONE"


def test_damaged_records_are_malformed():
    damaged = RECORDS[:-1] + bytes([RECORDS[-1] ^ 1])
    topic = {**TOPIC, "partitions": [{**PARTITION, "records": damaged}]}
    found = normalise(Fetch(), response(Fetch(), 12, responses=[topic]), ScriptSymbols(UNIQUE))
    assert "checksum" in found["malformed"]


@pytest.mark.parametrize("flaw", Flaw)
def test_a_flawed_batch_is_not_the_right_one(flaw):
    right, flawed = (requests.encode(Batch((Record(b"a"),), flaw=each), ScriptSymbols(UNIQUE)) for each in (None, flaw))
    assert flawed != right


UNREADABLE = (Flaw.WRONG_CRC, Flaw.MAGIC_1, Flaw.MAGIC_3, Flaw.TRUNCATED, Flaw.COUNT_TOO_HIGH, Flaw.COUNT_AND_OFFSETS)


@pytest.mark.parametrize("flaw", UNREADABLE)
def test_a_damaged_batch_cannot_be_decoded(flaw):
    data = requests.encode(Batch((Record(b"a"),), flaw=flaw), ScriptSymbols(UNIQUE))
    try:
        batches = list(decode_batches(data))
    except MalformedBatch:
        batches = []
    assert batches == []


def test_symbols_count_what_was_seen():
    symbols = ScriptSymbols(UNIQUE)
    assert [symbols.saw_producer_id(id_) for id_ in (90, 91, 90, -1)] == [0, 1, 0, -1]
    assert [symbols.producer_id(n) for n in (0, 1, 2, -1)] == [90, 91, -1, -1]
    assert symbols.saw_topic_id("trial", TOPIC_ID) == 0
    assert symbols.saw_topic_id("trial", None) is None
    assert (symbols.topic_id("trial"), symbols.nth_topic_id(0)) == (TOPIC_ID, TOPIC_ID)
    symbols.remove_topic("trial")
    assert symbols.topic_id("trial").int == 0
    assert symbols.script_name(symbols.real("trial-x")) == "trial-x"
    assert symbols.script_name("other-run") is None
    assert symbols.real("a/b") == "a/b"


def test_brokers_are_named_by_their_place():
    symbols = ScriptSymbols(UNIQUE, (Node(7, "a", 1), Node(9, "b", 2)))
    assert [symbols.broker(place) for place in (1, 2, 3, 1_000_000)] == [7, 9, 3, 1_000_000]
    assert [symbols.place(broker) for broker in (7, 9, 4, -1)] == [1, 2, 4, -1]
    assert symbols.is_address(9, "b", 2)
    assert not symbols.is_address(7, "b", 2)


def test_settings_are_own_or_inherited_with_synonyms_by_precedence():
    inherited = {**CONFIG, "name": "cleanup.policy", "config_source": 5, "synonyms": []}
    described = {**TOPIC, "configs": [CONFIG, inherited]}
    found = normalise(DescribeConfigs(()), response(DescribeConfigs(()), 4, results=[described]), ScriptSymbols(UNIQUE))
    assert (found["set"], found["inherited"]) == ((("retention.ms", "-1"),), ("cleanup.policy",))
    assert found["synonyms_in_order"]
    wrong = {**CONFIG, "value": "5"}
    found = normalise(
        DescribeConfigs(()),
        response(DescribeConfigs(()), 4, results=[{**TOPIC, "configs": [wrong]}]),
        ScriptSymbols(UNIQUE),
    )
    assert not found["synonyms_in_order"]


@pytest.mark.parametrize(
    ("replicas", "leaders", "distinct", "unevenness"),
    [
        ([(1, 2), (2, 3), (3, 1)], [1, 2, 3], True, (0, 0)),
        ([(1, 2), (1, 2), (1, 3)], [1, 1, 1], True, (3, 2)),
        ([(1, 1)], [1], False, (1, 2)),
    ],
)
def test_unevenness_is_the_most_on_a_broker_minus_the_fewest(replicas, leaders, distinct, unevenness):
    partitions = [
        SimpleNamespace(replica_nodes=nodes, leader_id=leader) for nodes, leader in zip(replicas, leaders, strict=True)
    ]
    found = placement([SimpleNamespace(partitions=partitions)], brokers=3)
    assert found["replicas_are_distinct"] is distinct
    assert (found["leaders_unevenness"], found["replicas_unevenness"]) == unevenness
