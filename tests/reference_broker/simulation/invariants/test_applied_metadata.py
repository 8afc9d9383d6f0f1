"""A broker that differs from its metadata, stray logs, and overdue periodic work are violations."""

from unittest.mock import patch

import pytest

from reference_broker.core.controller.elections import Elections
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.replication.partition import ReplicaRole
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.applied_metadata import check_applied_metadata, check_leaders_first
from reference_broker.simulation.invariants.files import FilesInvariants
from reference_broker.simulation.invariants.periodic_work import PERIOD_MAX_MS, pending_work
from tests.reference_broker.simulation.invariants.storm import Storm


def lose_a_replica(broker):
    del broker.replicas._partitions["orders", 0]


def keep_an_old_topic_setting(broker):
    broker.replicas.get("orders", 0).min_insync_replicas = 3


def keep_an_old_broker_setting(broker):
    broker.configuration.set_dynamic({"message.max.bytes": "5"}, {})


@pytest.mark.parametrize(
    ("tamper", "invariant"),
    [
        (lose_a_replica, "replicas-assigned"),
        (keep_an_old_topic_setting, "configs-applied"),
        (keep_an_old_broker_setting, "configs-applied"),
    ],
)
def test_a_broker_that_differs_from_the_metadata_is_a_violation(tamper, invariant):
    run = Storm(1, faults=0, faulty_ms=500).run(to_the_end=False)
    watched = run.invariants.watch.nodes[1]
    check_applied_metadata(watched)
    tamper(watched.node.broker)
    with pytest.raises(InvariantViolation) as violation:
        check_applied_metadata(watched)
    assert violation.value.name == invariant


def test_a_follower_that_starts_before_a_leader_of_the_same_change_is_a_violation():
    run = Storm(1, faults=0, faulty_ms=500).run(to_the_end=False)
    watched = run.invariants.watch.nodes[1]
    replicas = watched.node.broker.replicas
    led = next(partition for partition in replicas if partition.is_leader)
    followed = next(partition for partition in replicas if partition.role is ReplicaRole.FOLLOWER)
    del watched.by_name[followed.key], replicas._partitions[led.key]
    check_leaders_first(watched)
    replicas._unapplied[led.topic_id, led.index] = None
    with pytest.raises(InvariantViolation, match="leaders-first"):
        check_leaders_first(watched)


def test_a_stray_log_is_a_violation():
    run = Storm(1, faults=0, faulty_ms=500).run(to_the_end=False)
    watched = run.invariants.watch.nodes[1]
    watched.node.runtime.disk.make_directory("ghosts-0")
    watched.node.runtime.disk.replace("ghosts-0/partition.metadata", b"version: 0")
    with pytest.raises(InvariantViolation, match="no-stray-logs"):
        FilesInvariants().metadata_applied(watched)


def pending_after_rest(properties: dict[str, str]) -> str | None:
    """Return the overdue work of a cluster after a long time without clients and faults."""
    run = Storm(1, faults=2, faulty_ms=4_000, properties=properties).run(to_the_end=False)
    run.cluster.scheduler.run(3 * PERIOD_MAX_MS)
    return pending_work(run.cluster)


RETENTION = {"log.retention.check.interval.ms": "500", "log.retention.ms": "1000"}
PRODUCERS = {"producer.id.expiration.check.interval.ms": "500", "producer.id.expiration.ms": "10000"}
REBALANCE = {"leader.imbalance.check.interval.seconds": "2"}


@pytest.mark.parametrize(
    "properties", [{}, RETENTION, PRODUCERS, REBALANCE], ids=["checkpoints", "retention", "producers", "leaders"]
)
def test_no_work_is_overdue(properties):
    assert pending_after_rest(properties) is None


@pytest.mark.parametrize(
    ("owner", "attribute", "properties", "message"),
    [
        (ReplicaManager, "checkpoint", {}, "recovery-point-offset-checkpoint"),
        (ReplicaManager, "_checkpoint_high_watermarks", {}, "replication-offset-checkpoint"),
        (UnifiedLog, "apply_retention", RETENTION, "keeps a segment"),
        (UnifiedLog, "remove_expired_producers", PRODUCERS, "keeps producer"),
        (Elections, "maybe_balance_partition_leaders", REBALANCE, "preferred leader"),
    ],
)
def test_overdue_work_is_reported(owner, attribute, properties, message):
    with patch.object(owner, attribute, lambda *_: []):
        assert message in str(pending_after_rest(properties))
