"""Mistakes in what a broker does with its metadata, in time, and now and then: each is seen where it is seeded."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from reference_broker.core.controller.duties import Duties
from reference_broker.core.controller.elections import Elections
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.quorum import snapshots
from reference_broker.core.quorum.answers import Answers
from reference_broker.core.quorum.states import Prospective, Unattached
from reference_broker.core.replication.fetchers import Fetchers
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replicas import Replicas
from reference_broker.protocol.metadata_records import BrokerRegistrationChangeRecord
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.files import FilesInvariants
from reference_broker.simulation.invariants.followed import check_followed
from reference_broker.simulation.invariants.housekeeping import PERIOD_MAX_MS, undone
from tests.reference_broker.simulation.invariants.defects import Defect
from tests.reference_broker.simulation.invariants.storm import Storm
from tests.reference_broker.simulation.invariants.test_invariants import SEEDS, violation


def nothing(*_args, **_named):
    return None


def forget_the_replicas(original):
    def apply(self, record, now):
        is_new_epoch = original(self, record, now)
        self.replicas = self.replicas[:1]
        return is_new_epoch

    return apply


def leave_without_counting(original):
    def leave(self, key):
        home = self._homes.get(key)
        original(self, key)
        if home is not None:
            self._inhabitants[home] += 1

    return leave


def forget_directories(original):
    def apply_to_broker(self, record):
        original(self, record)
        if isinstance(record, BrokerRegistrationChangeRecord):
            self.brokers[record.broker_id] = replace(self.brokers[record.broker_id], log_dirs=())

    return apply_to_broker


def bind_by_a_pre_vote(original):
    def vote(self, request, now):
        response = original(self, request, now)
        if response.vote_granted and isinstance(self._node.state, Unattached | Prospective):
            self._node.vote_for(request.replica, now)
        return response

    return vote


MISTAKES = (
    Defect("laggard-leaves-isr", Partition, "maybe_shrink_isr", nothing, kinds=("isolate",), for_ms=9_000, faults=4),
    Defect("silent-is-fenced", Duties, "watch_sessions", nothing, for_ms=9_000, faulty_ms=10_000),
    Defect(
        "flushed-in-time",
        Replicas,
        "flush_overdue",
        nothing,
        faults=0,
        properties={"log.flush.interval.ms": "300", "log.flush.scheduler.interval.ms": "200"},
    ),
    Defect("nothing-piles-up", Purgatory, "drop", nothing),
    Defect(
        "snapshots-known",
        snapshots,
        "insort",
        nothing,
        properties={"metadata.log.max.record.bytes.between.snapshots": "300"},
    ),
    Defect("quorum-votes", Answers, "_vote", bind_by_a_pre_vote(Answers._vote), faults=0),
    Defect("record-says", MetadataImage, "_apply_to_broker", forget_directories(MetadataImage._apply_to_broker)),
    Defect("role-follows", Partition, "apply", forget_the_replicas(Partition.apply), faults=0),
    Defect("fetches-follow", Fetchers, "leave", leave_without_counting(Fetchers.leave)),
    Defect("fetches-follow", Fetchers, "update", lambda _self, _partition: None, faults=0),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake.invariant}-{mistake.attribute.strip('_')}")
def test_a_mistake_is_seen(mistake):
    assert any(violation(mistake, seed) == mistake.invariant for seed in range(SEEDS))


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
        FilesInvariants().metadata_advanced(watched, 0)


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
