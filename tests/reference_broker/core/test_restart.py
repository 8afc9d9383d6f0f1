"""State of a broker after a clean or unclean restart: the broker keeps what Apache Kafka would keep."""

from unittest.mock import patch

import pytest
from kio.schema.errors import ErrorCode

from reference_broker.core.log.checkpoints import CLEAN_SHUTDOWN_FILE
from reference_broker.core.replication.replica_manager import ReplicaManager
from tests.reference_broker.scripted import ScriptedBroker, batch

cleanly_or_not = pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker()


@cleanly_or_not
def test_topics_records_and_properties_survive_a_restart(broker, clean):
    topic_id = broker.create_topic(partitions=2, retention_ms="-1")
    broker.create_topic("gone")
    broker.produce(batch(b"a", b"b"), partition=1)
    broker.request("DeleteTopics", 5, topic_names=["gone"])
    broker.restart(clean=clean)
    [topic] = broker.request("Metadata", 12, topics=None).topics
    assert (topic.name, topic.topic_id, len(topic.partitions)) == ("orders", topic_id, 2)
    assert broker.broker.replicas.configuration("orders").integer("retention.ms") == -1
    assert broker.fetch(0, partition=1).high_watermark == 2
    assert broker.produce(batch(b"c"), partition=1).base_offset == 2


@cleanly_or_not
def test_producer_state_survives_a_restart(broker, clean):
    """As in Kafka, a producer snapshot has only the last batch of each producer."""
    broker.create_topic()
    sent = [batch(b"x", producer_id=5, producer_epoch=0, base_sequence=number) for number in range(3)]
    assert [broker.produce(records).base_offset for records in sent] == [0, 1, 2]
    broker.restart(clean=clean)
    assert broker.produce(sent[2]).base_offset == 2
    gap = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=7)
    assert broker.produce(gap).error_code == ErrorCode.out_of_order_sequence_number
    assert broker.fetch(0).high_watermark == 3


@cleanly_or_not
def test_producer_ids_are_never_allocated_twice(broker, clean):
    before = {broker.request("InitProducerId", 4).producer_id for _ in range(3)}
    broker.restart(clean=clean)
    after = {broker.request("InitProducerId", 4).producer_id for _ in range(1_500)}
    assert len(before | after) == 1_503


def test_the_log_start_survives_a_clean_stop(broker):
    broker.create_topic()
    broker.produce(batch(b"a"))
    broker.produce(batch(b"b"))
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 1}]}]
    broker.request("DeleteRecords", 2, topics=topics)
    broker.restart()
    assert broker.fetch(1).log_start_offset == 1


def test_the_log_start_after_a_kill_is_that_of_the_checkpoint(broker):
    """The checkpoint is periodic, so a DeleteRecords right before a kill is lost, as in Apache Kafka 4.3.1."""
    broker.create_topic()
    broker.produce(batch(b"a"))
    broker.produce(batch(b"b"))
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 1}]}]
    broker.request("DeleteRecords", 2, topics=topics)
    broker.restart(clean=False)
    assert broker.fetch(0).log_start_offset == 0
    broker.request("DeleteRecords", 2, topics=topics)
    broker.advance(60_000)
    broker.restart(clean=False)
    assert broker.fetch(1).log_start_offset == 1


def test_a_checkpoint_does_not_apply_to_a_later_topic(broker):
    broker.create_topic()
    broker.produce(batch(b"a", b"b"))
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 2}]}]
    broker.request("DeleteRecords", 2, topics=topics)
    broker.advance(60_000)
    broker.request("DeleteTopics", 5, topic_names=["orders"])
    broker.create_topic()
    broker.produce(batch(b"new"))
    broker.restart(clean=False)
    assert (broker.fetch(0).log_start_offset, broker.fetch(0).high_watermark) == (0, 1)


def test_a_directory_of_a_deleted_topic_is_not_reused(broker):
    broker.create_topic()
    broker.produce(batch(b"old"))
    old = {path: bytes(data) for path, data in broker.disk.files.items() if path.startswith("orders-0/")}
    broker.request("DeleteTopics", 5, topic_names=["orders"])
    broker.disk.make_directory("orders-0")
    broker.disk.files.update({path: bytearray(data) for path, data in old.items()})
    broker.create_topic()
    assert broker.fetch(0).high_watermark == 0


def test_the_clean_shutdown_file_exists_only_while_stopped(broker):
    assert not broker.disk.exists(CLEAN_SHUTDOWN_FILE)
    broker.node.close()
    assert broker.disk.exists(CLEAN_SHUTDOWN_FILE)
    broker.restart(clean=False)
    assert not broker.disk.exists(CLEAN_SHUTDOWN_FILE)


def test_each_start_has_a_higher_broker_epoch(broker):
    first = broker.broker.image.brokers[1].broker_epoch
    broker.restart()
    assert broker.broker.image.brokers[1].broker_epoch > first


def test_retention_deletes_old_segments():
    broker = ScriptedBroker(log_retention_check_interval_ms="1000")
    broker.create_topic(retention_ms="5000")
    broker.produce(batch(b"old"))
    broker.advance(1_000)
    assert broker.fetch(0).log_start_offset == 0
    broker.advance(6_000)
    assert broker.fetch(1).log_start_offset == 1


@pytest.mark.parametrize(
    ("task", "interval", "first_ms"),
    [
        ("apply_retention", "log_retention_check_interval_ms", 5_000),
        ("flush_overdue", "log_flush_scheduler_interval_ms", 5_000),
        ("checkpoint", "log_flush_offset_checkpoint_interval_ms", 5_000),
        ("_checkpoint_high_watermarks", "replica_high_watermark_checkpoint_interval_ms", 1_000),
        ("_remove_expired_producers", "producer_id_expiration_check_interval_ms", 1_000),
    ],
)
def test_tasks_of_the_log_manager_run_first_after_the_initial_delay(task, interval, first_ms):
    runs_ms: list[int] = []
    with patch.object(ReplicaManager, task, lambda *_: runs_ms.append(broker.now.monotonic_ms)):
        broker = ScriptedBroker(log_initial_task_delay_ms="5000", **{interval: "1000"})
        broker.advance(first_ms + 2_000)
    started_ms = runs_ms[0] - first_ms
    assert 0 <= started_ms < 200
    assert [run_ms - started_ms for run_ms in runs_ms] == [first_ms, first_ms + 1_000, first_ms + 2_000]


def test_flush_ms_makes_records_durable():
    broker = ScriptedBroker(log_flush_scheduler_interval_ms="100")
    broker.create_topic(flush_ms="500")
    broker.produce(batch(b"a"))
    [partition] = broker.broker.replicas
    broker.advance(400)
    assert partition.log.recovery_point == 0
    broker.advance(100)
    assert partition.log.recovery_point == 1
