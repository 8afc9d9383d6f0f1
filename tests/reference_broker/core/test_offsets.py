"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

import pytest
from kio.schema.errors import ErrorCode

from tests.reference_broker.scripted import START_MS, ScriptedBroker, batch


@pytest.fixture
def broker() -> ScriptedBroker:
    """Return a broker with records at offsets 0 to 3 and timestamps 10, 30, 20 and 40 ms after the start."""
    broker = ScriptedBroker()
    broker.create_topic()
    for after_ms in (10, 30, 20, 40):
        assert broker.produce(batch(b"x", timestamp_ms=START_MS + after_ms)).error_code == 0
    return broker


def list_offset(broker, timestamp, version=11, **fields):
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp, **fields}
    topics = [{"name": fields.pop("topic", "orders"), "partitions": [partition]}]
    return broker.request("ListOffsets", version, topics=topics).topics[0].partitions[0]


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (-1, 4)),
        (-2, (-1, 0)),
        (-3, (START_MS + 40, 3)),
        (-4, (-1, 0)),
        (-5, (-1, -1)),
        (-6, (-1, -1)),
        (0, (START_MS + 10, 0)),
        (START_MS + 10, (START_MS + 10, 0)),
        (START_MS + 11, (START_MS + 30, 1)),
        (START_MS + 31, (START_MS + 40, 3)),
        (START_MS + 41, (-1, -1)),
    ],
)
def test_each_kind_of_timestamp_is_looked_up(broker, timestamp, found):
    response = list_offset(broker, timestamp)
    assert (response.error_code, (response.timestamp, response.offset)) == (ErrorCode.none, found)
    assert response.leader_epoch == (0 if found[1] >= 0 else -1)


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_a_special_timestamp_needs_its_version(broker, timestamp, version):
    assert list_offset(broker, timestamp, version).error_code == ErrorCode.unsupported_version


def test_unknown_partitions_unknown_epochs_and_repeated_partitions_are_rejected(broker):
    assert list_offset(broker, -1, partition_index=5).error_code == ErrorCode.unknown_topic_or_partition
    assert list_offset(broker, -1, current_leader_epoch=3).error_code == ErrorCode.unknown_leader_epoch
    twice = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}] * 2
    [topic] = broker.request("ListOffsets", 7, topics=[{"name": "orders", "partitions": twice}]).topics
    assert [found.error_code for found in topic.partitions] == [ErrorCode.invalid_request]


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [((-1, 0), (0, 0, 4)), ((-1, 1), (0, -1, -1)), ((5, 0), (75, -1, -1)), ((0, 0), (0, 0, 4))],
)
def test_the_end_of_a_leader_epoch_is_returned(broker, epochs, expected):
    current, epoch = epochs
    partition = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    topics = [{"topic": "orders", "partitions": [partition]}]
    [found] = broker.request("OffsetForLeaderEpoch", 4, replica_id=-1, topics=topics).topics[0].partitions
    assert (found.error_code, found.leader_epoch, found.end_offset) == expected


def delete_records(broker, offset, topic="orders"):
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
    [found] = broker.request("DeleteRecords", 2, topics=topics).topics[0].partitions
    return found.error_code, found.low_watermark


def test_delete_records_advances_the_log_start(broker):
    assert delete_records(broker, 2) == (0, 2)
    assert delete_records(broker, 1) == (0, 2)
    assert broker.fetch(1).error_code == ErrorCode.offset_out_of_range
    assert list_offset(broker, -2).offset == 2
    assert broker.fetch(2).log_start_offset == 2
    assert delete_records(broker, 5) == (ErrorCode.offset_out_of_range, -1)
    assert delete_records(broker, -1) == (0, 4)
    assert delete_records(broker, -2) == (ErrorCode.offset_out_of_range, -1)


def test_records_of_some_topics_cannot_be_deleted(broker):
    broker.create_topic("table", cleanup_policy="compact")
    assert delete_records(broker, 0, "table") == (ErrorCode.policy_violation, -1)
    assert delete_records(broker, 0, "nowhere") == (ErrorCode.unknown_topic_or_partition, -1)
    broker.request("FindCoordinator", 4, coordinator_keys=["g"])
    assert delete_records(broker, 0, "__consumer_offsets") == (ErrorCode.invalid_topic_exception, -1)
