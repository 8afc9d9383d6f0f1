"""FindCoordinator, OffsetCommit and OffsetFetch for a group without members."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from reference_broker.core import group_coordinator
from reference_broker.core.group_coordinator import java_hash, partition_for_group
from reference_broker.core.group_offsets import GroupOffsets
from reference_broker.protocol.record_batch import BatchHeader
from tests.reference_broker.scripted import ScriptedBroker


@pytest.fixture
def broker() -> ScriptedBroker:
    broker = ScriptedBroker(offsets_topic_num_partitions="3")
    broker.create_topic(partitions=2)
    assert broker.request("FindCoordinator", 3, key="g").error_code == ErrorCode.coordinator_not_available
    assert broker.request("FindCoordinator", 3, key="g").error_code == 0
    return broker


def commit(broker, offset, group="g", version=9, generation=-1, topic="orders", **fields):
    """Commit the offset of a partition, and return the error code."""
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "", **fields}
    requested = {"topics": [{"name": topic, "partitions": [partition]}], "generation_id_or_member_epoch": generation}
    [found] = broker.request("OffsetCommit", version, group_id=group, **requested).topics[0].partitions
    return found.error_code


def committed(broker, group="g", version=7, topics=(("orders", (0,)),)):
    """Return (topic, partition, offset, leader epoch, metadata) of each partition."""
    requested = topics and [{"name": name, "partition_indexes": indexes} for name, indexes in topics]
    response = broker.request("OffsetFetch", version, group_id=group, topics=requested)
    return [
        (topic.name, found.partition_index, found.committed_offset, found.committed_leader_epoch, found.metadata)
        for topic in response.topics
        for found in topic.partitions
    ]


def test_a_commit_is_fetched_with_its_epoch_and_metadata(broker):
    assert committed(broker) == [("orders", 0, -1, -1, "")]
    assert commit(broker, 5, committed_leader_epoch=0, committed_metadata="note") == 0
    assert commit(broker, 7, committed_leader_epoch=0, committed_metadata="later") == 0
    assert committed(broker) == [("orders", 0, 7, 0, "later")]
    assert committed(broker, group="other") == [("orders", 0, -1, -1, "")]
    assert committed(broker, topics=None) == [("orders", 0, 7, 0, "later")]


def test_commits_that_are_not_fetched_do_not_accumulate(broker):
    for offset in range(50):
        assert commit(broker, offset) == 0
    group = broker.broker.groups.find("g")
    assert len(group._uncommitted) <= 1
    assert committed(broker) == [("orders", 0, 49, -1, "")]


def test_control_batches_at_the_end_of_the_log_are_loaded(broker):
    """Kafka's group coordinator writes such batches at the end of a transaction."""
    assert commit(broker, 5) == 0
    partition = broker.broker.groups.find("g").partition
    marker = Record(value=bytes(6), key=bytes([0, 0, 0, 1]))
    end = RecordBatch((marker,), base_offset=partition.log.log_end_offset, control=True, transactional=True)
    data = encode_batch(replace(end, leader_epoch=partition.leader_epoch))
    partition.log.append_placed(BatchHeader.parse(data), data, now_ms=0)
    loaded = GroupOffsets(partition)
    for _ in range(3):
        loaded.load_more()
    assert loaded.is_loaded
    assert [value.offset for value in loaded.committed("g").values()] == [5]


COMMIT_KEY = bytes.fromhex("0001 0001 67 0006 6f7264657273 00000000")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", b"abc"),
        (b"\0\1\0\1g", b"abc"),
        (None, b"abc"),
        (COMMIT_KEY, b"\0"),
        (COMMIT_KEY, b"\0\3abc"),
        (COMMIT_KEY, b"\0\5" + bytes(40)),
        (COMMIT_KEY, b"\xff\xff" + bytes(40)),
    ],
    ids=["short key", "incomplete key", "no key", "short value", "incomplete value", "newer value", "negative version"],
)
def test_a_partition_with_a_malformed_record_is_not_loaded(broker, key, value):
    """In Kafka, the coordinator of this partition is FAILED until the next epoch (`CoordinatorRuntime`).

    Other partitions are loaded.
    """
    groups = broker.broker.groups
    other = next(group for group in ("h", "i", "j") if groups.partition_of(group) != groups.partition_of("g"))
    assert (commit(broker, 5), commit(broker, 6, group=other)) == (0, 0)
    partition = groups.find("g").partition
    malformed = RecordBatch((Record(key=key, value=value),), base_offset=partition.log.log_end_offset)
    data = encode_batch(replace(malformed, leader_epoch=partition.leader_epoch))
    partition.log.append_placed(BatchHeader.parse(data), data, now_ms=0)
    for _ in range(2):
        broker.restart()
        assert commit(broker, 7) == ErrorCode.not_coordinator
        assert committed(broker, group=other)[0][2] == 6
    notes = [note for note in broker.cluster._simulated.machines[1].notes if "failed to load" in note]
    assert len(notes) == 2
    assert f"failed to load __consumer_offsets-{partition.index}: the record at offset 1 " in notes[0]


def test_offsets_of_several_groups_are_fetched_by_topic_id(broker):
    assert commit(broker, 5) == 0
    topic_id = broker.broker.image.topics["orders"].topic_id
    requested = [
        {"topic_id": topic_id, "partition_indexes": [0, 1]},
        {"topic_id": UUID(int=99), "partition_indexes": [0]},
    ]
    groups = [{"group_id": "g", "topics": requested}, {"group_id": "h", "topics": None}]
    first, second = broker.request("OffsetFetch", 10, groups=groups).groups
    known, unknown = first.topics
    assert [found.committed_offset for found in known.partitions] == [5, -1]
    assert unknown.partitions[0].error_code == ErrorCode.unknown_topic_id
    assert second.topics == ()


def test_metadata_that_is_too_long_is_rejected(broker):
    assert commit(broker, 1, committed_metadata="x" * 4096) == 0
    assert commit(broker, 2, committed_metadata="x" * 4097) == ErrorCode.offset_metadata_too_large
    assert committed(broker)[0][2] == 1


def test_a_generation_without_a_member_is_rejected(broker):
    assert commit(broker, 1, version=8, generation=3) == ErrorCode.illegal_generation
    assert commit(broker, 1, version=9, generation=3) == ErrorCode.group_id_not_found
    assert commit(broker, 1) == 0
    assert commit(broker, 2, generation=3) == ErrorCode.unknown_member_id
    assert committed(broker)[0][2] == 1


def test_commits_that_are_too_large_together_are_rejected(broker):
    broker.create_topic("wide", partitions=300)
    partitions = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": "x" * 4096} for index in range(300)
    ]
    requested = {"topics": [{"name": "wide", "partitions": partitions}], "generation_id_or_member_epoch": -1}
    [topic] = broker.request("OffsetCommit", 9, group_id="g", **requested).topics
    assert {found.error_code for found in topic.partitions} == {ErrorCode.unknown_server_error}
    assert committed(broker, topics=None) == []


def test_an_unknown_partition_is_rejected(broker):
    assert commit(broker, 1, partition_index=9) == ErrorCode.unknown_topic_or_partition
    assert commit(broker, 1, topic="nowhere") == ErrorCode.unknown_topic_or_partition
    assert commit(broker, 1, topic="nowhere", generation=3) == ErrorCode.unknown_topic_or_partition


def begin_to_delete_offsets(broker, monkeypatch, partitions=25):
    """Start to delete a topic with committed offsets. Return the group's offsets after the first event.

    This event appends 10 tombstones.
    """
    monkeypatch.setattr(group_coordinator, "_TOMBSTONES_PER_EVENT", 10)
    broker.create_topic("large", partitions=partitions)
    commits = [{"partition_index": index, "committed_offset": 1} for index in range(partitions)]
    requested = {"topics": [{"name": "large", "partitions": commits}], "generation_id_or_member_epoch": -1}
    broker.request("OffsetCommit", 9, group_id="g", **requested)
    group = broker.broker.groups.find("g")
    assert len(group.committed("g")) == partitions
    counts = []

    def has_begun():
        counts.append(len(group.committed("g")))
        return counts[-1] < partitions

    broker.cluster.start_request(1, "DeleteTopics", 5, topic_names=["large"])
    broker.cluster.run_until(has_begun)
    assert counts[-1] == partitions - 10
    return group


def test_offsets_of_many_partitions_are_deleted_in_steps(broker, monkeypatch):
    group = begin_to_delete_offsets(broker, monkeypatch)
    broker.advance(0)
    assert group.committed("g") == {}


def test_offsets_of_a_topic_created_again_during_their_deletion_stay(broker, monkeypatch):
    group = begin_to_delete_offsets(broker, monkeypatch)
    broker.broker.image.topics["large"] = broker.broker.image.topics["orders"]
    broker.advance(0)
    assert len(group.committed("g")) == 15


def test_no_tombstones_are_appended_after_a_resignation(broker, monkeypatch):
    group = begin_to_delete_offsets(broker, monkeypatch)
    broker.broker.groups.on_resignation(group.partition, broker.now)
    end_offset = group.partition.log.log_end_offset
    broker.advance(0)
    assert group.partition.log.log_end_offset == end_offset


def test_offsets_are_deleted_with_their_topic(broker):
    assert commit(broker, 5) == 0
    broker.request("DeleteTopics", 5, topic_names=["orders"])
    broker.create_topic(partitions=2)
    assert committed(broker) == [("orders", 0, -1, -1, "")]
    broker.restart()
    assert committed(broker, topics=None) == []


def test_offsets_of_a_topic_that_is_deleted_during_loading_stay_until_the_next_deletion(broker):
    assert commit(broker, 5) == 0
    broker.create_topic("other")
    loading = broker.broker.groups.find("g")
    loading._load_to += 1
    broker.request("DeleteTopics", 5, topic_names=["orders"])
    loading._load_to -= 1
    assert list(loading.committed("g")) == [("orders", 0)]
    broker.request("DeleteTopics", 5, topic_names=["other"])
    assert list(loading.committed("g")) == []


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_survive_a_restart(broker, clean):
    for group in ("g", "h", "i", "j"):
        assert commit(broker, len(group), group=group) == 0
    assert commit(broker, 9, group="j") == 0
    broker.restart(clean=clean)
    assert [committed(broker, group=group)[0][2] for group in "ghij"] == [1, 1, 1, 9]


def test_find_coordinator_returns_the_broker(broker):
    one = broker.request("FindCoordinator", 3, key="g", key_type=0)
    assert (one.error_code, one.node_id, one.host, one.port) == (0, 1, "b1.kafka.test", 9092)
    several = broker.request("FindCoordinator", 4, key_type=0, coordinator_keys=["g", "h"]).coordinators
    assert [(found.key, found.node_id) for found in several] == [("g", 1), ("h", 1)]
    assert len(broker.broker.image.topics["__consumer_offsets"].partitions) == 3
    rejected = broker.request("FindCoordinator", 3, key="t", key_type=1)
    assert (rejected.error_code, rejected.node_id) == (ErrorCode.invalid_request, -1)


@pytest.mark.parametrize("key_type", [-1, 3, 100])
def test_an_unknown_key_type_is_rejected_with_the_message_of_its_error(broker, key_type):
    old = broker.request("FindCoordinator", 3, key="g", key_type=key_type)
    new = broker.request("FindCoordinator", 4, key_type=key_type, coordinator_keys=["g", "h"]).coordinators
    assert [found.key for found in new] == ["g", "h"]
    for found in (old, *new):
        assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.invalid_request, -1, "", -1)
        assert found.error_message.startswith("This most likely occurs because of a request being malformed")


def test_keys_of_a_known_type_have_no_message(broker):
    for key_type in (0, 1):
        [found] = broker.request("FindCoordinator", 4, key_type=key_type, coordinator_keys=["g"]).coordinators
        assert found.error_message == ""


def test_no_coordinator_while_its_topic_cannot_be_created():
    broker = ScriptedBroker(offsets_topic_replication_factor="3")
    for _ in range(3):
        response = broker.request("FindCoordinator", 3, key="g")
        assert (response.error_code, response.node_id) == (ErrorCode.coordinator_not_available, -1)
    broker.create_topic()
    assert commit(broker, 1) == ErrorCode.not_coordinator
    assert broker.request("OffsetFetch", 7, group_id="g", topics=None).error_code == ErrorCode.not_coordinator
    assert (
        broker.request("OffsetFetch", 8, groups=[{"group_id": "g"}]).groups[0].error_code == ErrorCode.not_coordinator
    )
    requested = [{"name": "orders", "partition_indexes": [0, 1]}]
    [topic] = broker.request("OffsetFetch", 1, group_id="g", topics=requested).topics
    assert [found.error_code for found in topic.partitions] == [ErrorCode.not_coordinator] * 2


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("console-consumer-12345", 158455506),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_java_hash(text, hashed):
    assert java_hash(text) == hashed


@given(st.text(max_size=5), st.integers(0, 300))
def test_java_hash_uses_utf_16_code_units(text, times):
    units = (text * times).encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + 256 * high + low) % 2**32
    assert java_hash(text * times) % 2**32 == value


@given(st.text(), st.integers(1, 100))
def test_every_group_has_a_partition(group, partitions):
    assert 0 <= partition_for_group(group, partitions) < partitions
