"""A broker that is not what its metadata say, files that strayed, and what is done now and then, or left undone."""

from unittest.mock import patch

import pytest

from reference_broker.core.controller.elections import Elections
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.replication.replicas import Replicas
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.files import FilesInvariants
from reference_broker.simulation.invariants.followed import check_followed
from reference_broker.simulation.invariants.housekeeping import PERIOD_MAX_MS, undone
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
        (keep_an_old_topic_setting, "settings-follow"),
        (keep_an_old_broker_setting, "settings-follow"),
    ],
)
def test_a_broker_that_is_not_what_the_metadata_say_is_seen(tamper, invariant):
    run = Storm(1, faults=0, faulty_ms=500).run()
    watched = run.invariants.watch.nodes[1]
    check_followed(watched)
    tamper(watched.node.broker)
    with pytest.raises(InvariantViolation) as seen:
        check_followed(watched)
    assert seen.value.name == invariant


def test_a_log_that_strayed_is_seen():
    run = Storm(1, faults=0, faulty_ms=500).run()
    watched = run.invariants.watch.nodes[1]
    watched.node.runtime.disk.make_directory("ghosts-0")
    watched.node.runtime.disk.replace("ghosts-0/partition.metadata", b"version: 0")
    with pytest.raises(InvariantViolation, match="no-stray-logs"):
        FilesInvariants().metadata_applied(watched)


def rested(properties: dict[str, str]) -> str | None:
    """What is left undone by a cluster that was left alone for long."""
    run = Storm(1, faults=2, faulty_ms=4_000, properties=properties).run()
    run.cluster.scheduler.run(3 * PERIOD_MAX_MS)
    return undone(run.cluster)


RETENTION = {"log.retention.check.interval.ms": "500", "log.retention.ms": "1000"}
REBALANCE = {"leader.imbalance.check.interval.seconds": "2"}


@pytest.mark.parametrize("properties", [{}, RETENTION, REBALANCE], ids=["checkpoints", "retention", "leaders"])
def test_everything_is_done_in_time(properties):
    assert rested(properties) is None


@pytest.mark.parametrize(
    ("owner", "attribute", "properties", "told"),
    [
        (Replicas, "checkpoint", {}, "recovery-point-offset-checkpoint"),
        (Replicas, "_checkpoint_high_watermarks", {}, "replication-offset-checkpoint"),
        (PartitionLog, "apply_retention", RETENTION, "keeps a segment"),
        (Elections, "preferred", REBALANCE, "prefers"),
    ],
)
def test_what_is_left_undone_is_told(owner, attribute, properties, told):
    with patch.object(owner, attribute, lambda *_: []):
        assert told in str(rested(properties))
