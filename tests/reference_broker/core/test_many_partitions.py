"""Metadata changes of many replicas are applied in steps: one event opens or deletes only a few logs."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from kio.schema.errors import ErrorCode

from reference_broker.core.log.checkpoints import CLEAN_SHUTDOWN_FILE
from tests.reference_broker.cluster import Cluster
from tests.reference_broker.scripted import ScriptedBroker, batch

_PARTITIONS = 100
_OPENED_PER_EVENT_MAX = 8
_DELETED_PER_EVENT_MAX = 32


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker()


def replica_counts(cluster: Cluster, until: Callable[[int], bool]) -> Sequence[int]:
    """Return the number of open replicas of node 1 after each event until the condition is true."""
    counts: list[int] = []

    def count() -> bool:
        found = cluster.nodes[1].broker
        counts.append(0 if found is None else len(list(found.replicas)))
        return until(counts[-1])

    cluster.run_until(count)
    return counts


def directories(broker: ScriptedBroker, name: str = "large") -> list[str]:
    return [found for found in broker.disk.list("") if found.startswith(f"{name}-")]


def begin_to_delete(broker: ScriptedBroker) -> list[int]:
    """Start to delete a topic; return the number of its directories after each event until some are deleted."""
    broker.create_topic("large", partitions=_PARTITIONS)
    broker.cluster.start_request(1, "DeleteTopics", 5, topic_names=["large"])
    counts: list[int] = []

    def count() -> bool:
        counts.append(len(directories(broker)))
        return counts[-1] < _PARTITIONS

    broker.cluster.run_until(count)
    return counts


def largest_step(counts: Sequence[int]) -> int:
    return max(after - before for before, after in pairwise(counts))


def begin_to_create(broker: ScriptedBroker, name: str = "large", partitions: int = _PARTITIONS) -> None:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    broker.cluster.start_request(1, "CreateTopics", 7, topics=[topic])


def test_an_event_opens_a_bounded_number_of_new_logs(broker):
    begin_to_create(broker)
    counts = replica_counts(broker.cluster, lambda count: count == _PARTITIONS)
    assert 0 < largest_step(counts) <= _OPENED_PER_EVENT_MAX


def test_an_event_opens_a_bounded_number_of_logs_at_a_start(broker):
    broker.create_topic("large", partitions=_PARTITIONS)
    broker.cluster.kill(1)
    broker.cluster.start(1)
    counts = replica_counts(broker.cluster, lambda count: count == _PARTITIONS)
    assert 0 < largest_step(counts) <= _OPENED_PER_EVENT_MAX


def test_a_replica_that_is_not_open_yet_is_not_led(broker):
    begin_to_create(broker)
    replica_counts(broker.cluster, lambda count: count > 0)
    data = [{"name": "large", "partition_data": [{"index": _PARTITIONS - 1, "records": batch(b"a")}]}]
    responses = broker.cluster.start_request(1, "Produce", 12, acks=-1, timeout=1_000, topic_data=data)
    counts = replica_counts(broker.cluster, lambda _: bool(responses))
    assert counts[-1] < _PARTITIONS
    assert responses[0].responses[0].partition_responses[0].error_code == ErrorCode.not_leader_or_follower


def test_the_broker_does_not_report_metadata_that_it_has_not_applied(broker):
    before = broker.broker.published_offset
    begin_to_create(broker)
    replica_counts(broker.cluster, lambda count: count > 0)
    assert broker.broker.metadata_offset > before
    assert broker.broker.published_offset == before
    replica_counts(broker.cluster, lambda count: count == _PARTITIONS)
    assert broker.broker.published_offset == broker.broker.metadata_offset


def test_a_topic_deleted_while_its_logs_are_opened_leaves_no_directory(broker):
    begin_to_create(broker)
    replica_counts(broker.cluster, lambda count: count > 0)
    deleted = broker.cluster.start_request(1, "DeleteTopics", 5, topic_names=["large"])
    counts = replica_counts(broker.cluster, lambda count: bool(deleted) and count == 0)
    assert max(counts) < _PARTITIONS
    broker.advance(1_000)
    assert not [name for name in broker.disk.list("") if name.startswith("large-")]


def test_records_of_every_partition_survive_a_kill(broker):
    broker.create_topic("large", partitions=_PARTITIONS)
    for partition in (0, _PARTITIONS - 1):
        broker.produce(batch(b"a"), "large", partition)
    broker.restart(clean=False)
    replica_counts(broker.cluster, lambda count: count == _PARTITIONS)
    assert [broker.fetch(0, "large", partition).high_watermark for partition in (0, _PARTITIONS - 1)] == [1, 1]


def test_strays_are_deleted_after_the_last_log_is_open(broker):
    broker.create_topic("large", partitions=_PARTITIONS)
    broker.disk.replace("stray-0/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    broker.restart()
    replica_counts(broker.cluster, lambda count: count == _PARTITIONS)
    broker.advance(0)
    names = broker.disk.list("")
    assert "stray-0" not in names
    assert sum(name.startswith("large-") for name in names) == _PARTITIONS


def test_a_stop_before_all_logs_are_open_after_a_crash_is_not_clean(broker):
    """The logs that were not opened may still need recovery."""
    broker.create_topic("large", partitions=_PARTITIONS)
    broker.cluster.kill(1)
    broker.cluster.start(1)
    replica_counts(broker.cluster, lambda count: 0 < count < _PARTITIONS)
    broker.node.close()
    assert not broker.disk.exists(CLEAN_SHUTDOWN_FILE)


def test_an_event_deletes_a_bounded_number_of_logs(broker):
    counts = begin_to_delete(broker)
    assert _PARTITIONS - counts[-1] <= _DELETED_PER_EVENT_MAX
    assert not list(broker.broker.replicas), "all replicas are removed at once"
    broker.advance(0)
    assert directories(broker) == []


def test_a_topic_created_again_during_its_deletion_has_new_logs(broker):
    begin_to_delete(broker)
    broker.create_topic("large", partitions=_PARTITIONS)
    broker.produce(batch(b"a"), "large", _PARTITIONS - 1)
    broker.advance(1_000)
    assert len(directories(broker)) == _PARTITIONS
    assert broker.fetch(0, "large", _PARTITIONS - 1).high_watermark == 1


def test_a_stop_during_a_deletion_deletes_the_remaining_logs(broker):
    begin_to_delete(broker)
    assert directories(broker)
    broker.node.close()
    assert directories(broker) == []


def test_committed_metadata_of_many_records_are_applied_together_after_several_events(broker):
    begin_to_create(broker, "many", 10 * _PARTITIONS)
    image, steps = broker.node.metadata.image, 0

    def is_visible() -> bool:
        nonlocal steps
        has_unapplied_records = broker.node.quorum.high_watermark > broker.node.metadata.offset + 1
        steps += has_unapplied_records
        assert not has_unapplied_records or "many" not in image.topics
        return "many" in image.topics

    broker.cluster.run_until(is_visible)
    assert steps > 1
    assert len(image.topics["many"].partitions) == 10 * _PARTITIONS
