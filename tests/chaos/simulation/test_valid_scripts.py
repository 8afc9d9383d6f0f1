"""Trials from seeds, each of which once had a false violation. They have no violation now."""

import pytest

from chaos.simulation.run import run
from conformance.trial.trial import ClusterSettings, Topic, Trial
from fixtures.clients.steps import (
    CreatePartitions,
    CreateTopic,
    Produce,
    Producer,
    ReassignPartition,
    RequestClient,
    SendBatches,
)
from fixtures.faults import (
    Configure,
    Damage,
    DamageDisk,
    Elect,
    HalfOpen,
    Isolate,
    Kill,
    Listener,
    PowerCut,
    Reassign,
    Role,
    ShutDown,
    Slow,
    Timed,
    Unregister,
    Wipe,
)

SCRIPTS = {
    "an unclean election is requested, and no setting permits it": Trial(
        clients=(Producer(steps=(SendBatches(batches=20, pause_ms=400),), acks=1, idempotent=False),),
        schedule=(
            Timed(at_ms=0, fault=Isolate(node=Role.LEADER, listener=Listener.REPLICATION), for_ms=60_000),
            Timed(at_ms=40_000, fault=Kill(node=Role.LEADER), for_ms=15_000),
            Timed(at_ms=50_000, fault=Elect(unclean=True)),
        ),
    ),
    "a replica that was wiped leads before its broker has registered again": Trial(
        topics=(Topic(replication_factor=2),),
        clients=(Producer(steps=(SendBatches(),)),),
        schedule=(
            Timed(at_ms=0, fault=Wipe(node=Role.FOLLOWER)),
            Timed(at_ms=0, fault=ShutDown(node=Role.LEADER)),
        ),
    ),
    "the sequence of a batch with an unknown outcome is not reused for another batch": Trial(
        topics=(Topic(partitions=2),),
        clients=(
            RequestClient(steps=(Produce(partition=1, acks=0, idempotent=True), Produce(partition=1, idempotent=True))),
        ),
    ),
    "after thirty seconds a follower closes a connection that the leader has lost": Trial(
        topics=(Topic(partitions=2, replication_factor=2),),
        schedule=(Timed(at_ms=0, fault=HalfOpen(one=Role.CONTROLLER, other=Role.STANDBY)),),
    ),
    "a removed replica has deleted its log before its leader learns of the removal": Trial(
        seed=4,
        clients=(
            Producer(steps=(SendBatches(batches=4, pause_ms=5),), idempotent=False),
            Producer(),
            RequestClient(steps=(ReassignPartition(replicas=(3, 2, 1)), ReassignPartition(replicas=(2,)))),
        ),
    ),
    "a broker shuts down while it waits for a response from an unregistered broker": Trial(
        topics=(Topic(), Topic(name="b")),
        schedule=(
            Timed(0, Slow(source=Role.LEADER, destination=Role.CONTROLLER, delay_ms=90, both_ways=False), 1_500),
            Timed(0, Unregister(node=Role.LAST_FOLLOWER)),
        ),
    ),
    "segments that begin below the log start are deleted later": Trial(
        seed=3,
        cluster=ClusterSettings(
            properties=(("log.retention.check.interval.ms", "2000"), ("replica.fetch.max.bytes", "1000"))
        ),
        topics=(Topic(properties=(("segment.ms", "400"), ("retention.bytes", "5000"))),),
        clients=(
            Producer(
                steps=(SendBatches(batches=6, pause_ms=300, value_bytes=700),), idempotent=False, request_timeout_ms=500
            ),
        ),
        schedule=(
            Timed(at_ms=0, fault=DamageDisk(node=Role.FOLLOWER, what=Damage.CHECKPOINTS)),
            Timed(at_ms=1_280, fault=Kill(node=Role.LEADER), for_ms=2_000),
        ),
    ),
    "a disk is wiped while a power cut waits for its next write": Trial(
        schedule=(
            Timed(at_ms=0, fault=PowerCut(nodes=(1,), after_writes=0), for_ms=2_000),
            Timed(at_ms=1_000, fault=Wipe(node=1), for_ms=500),
        ),
    ),
    "a leader replaces records by a snapshot that no other running node has": Trial(
        seed=5,
        cluster=ClusterSettings(
            properties=(
                ("metadata.log.max.record.bytes.between.snapshots", "72"),
                ("metadata.max.retention.bytes", "500"),
            )
        ),
        topics=(Topic(properties=(("segment.index.bytes", "12"),)), Topic(name="b")),
        clients=(Producer(steps=(SendBatches(batches=3, pause_ms=1_000),)),),
        schedule=(
            Timed(at_ms=0, fault=PowerCut(after_writes=46), for_ms=2_000),
            Timed(at_ms=1_000, fault=Configure(name="max.message.bytes", value="100000")),
            Timed(at_ms=0, fault=Configure(name="retention.ms", value="100000")),
        ),
    ),
    "a power cut loses one segment that was not flushed, and keeps the next segments": Trial(
        seed=2625159020,
        cluster=ClusterSettings(
            properties=(
                ("metadata.log.max.record.bytes.between.snapshots", "72"),
                ("metadata.max.retention.bytes", "500"),
            )
        ),
        topics=(Topic(properties=(("segment.index.bytes", "12"),)), Topic(name="b")),
        clients=(Producer(steps=(SendBatches(batches=4),)),),
        schedule=(
            Timed(at_ms=0, fault=Reassign(replicas=(2, 3))),
            Timed(at_ms=7, fault=PowerCut(nodes=(Role.CONTROLLER,))),
            Timed(at_ms=1, fault=Reassign(replicas=(3, 2, 1))),
        ),
    ),
    "the leader of a fetcher is unregistered before the fetcher is removed": Trial(
        cluster=ClusterSettings(nodes=4),
        topics=(Topic(partitions=2),),
        schedule=(
            Timed(at_ms=100, fault=PowerCut(nodes=(Role.CONTROLLER,)), for_ms=7_752),
            Timed(at_ms=200, fault=Unregister(node=2)),
        ),
    ),
    "a replica that is checked only in rotation counts with its current state": Trial(
        topics=(Topic(partitions=3), Topic(name="b")),
        clients=(RequestClient(steps=(CreatePartitions(total=4, topic="b"), CreateTopic(topic="c", partitions=2))),),
    ),
}


@pytest.mark.parametrize("story", SCRIPTS)
def test_a_valid_script_has_no_violation(story):
    assert run(SCRIPTS[story]).violation is None
