"""Hypothesis strategy for trials of the simulation: cluster, topics, clients and faults.

Swarm testing (Groce and others, ISSTA 2012): each trial first draws a `Swarm`, a few kinds of clients and faults and a
few settings. Then it draws only from these. Otherwise every trial would be a mixture of everything, in which rare
combinations hardly occur. A trial usually has a hundred client operations and three faults in 30 s of virtual time.

Faults that find bugs in replicated logs are drawn often: faults of the leader, faults within milliseconds of each other
or just within a timeout, and *stories*: faults in an order in which real clusters have lost records.

Trials shrink towards one client, no fault and Kafka's defaults.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.simulation.choice import chosen, some
from chaos.simulation.client_strategies import CLIENT_KINDS, client_lists
from chaos.simulation.fault_strategies import SIMULATED_KINDS, schedules
from chaos.simulation.shape import Shape
from conformance.trial.trial import Client, ClusterSettings, Topic, Trial
from fixtures.clients.steps import Producer, SendBatches

_SEED_MAX: Final = 2**32 - 1

Properties = tuple[tuple[str, str], ...]

_TOPIC_SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "min.insync.replicas": ("2", "1", "3"),
    "unclean.leader.election.enable": ("true",),
    "flush.messages": ("1", "3", "10"),
    "segment.index.bytes": ("24", "12", "64"),
    "index.interval.bytes": ("0", "100", "500"),
    "segment.ms": ("400", "2000"),
    "retention.ms": ("1000", "5000"),
    "retention.bytes": ("500", "5000"),
    "message.timestamp.type": ("LogAppendTime",),
    "max.message.bytes": ("300", "2000"),
    "file.delete.delay.ms": ("0", "1000"),
    "cleanup.policy": ("compact", "compact,delete"),
}
"""Values of topic properties. A small `segment.index.bytes` gives many segments; Kafka's minimum of `segment.bytes`, a
mebibyte, would give one."""

_CLUSTER_SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "replica.lag.time.max.ms": ("1000", "3000", "10000"),
    "replica.fetch.wait.max.ms": ("50", "500"),
    "replica.fetch.backoff.ms": ("50", "1000"),
    "replica.fetch.max.bytes": ("100", "1000"),
    "broker.session.timeout.ms": ("2000", "4000", "9000"),
    "controller.quorum.fetch.timeout.ms": ("1000", "3000"),
    "log.flush.offset.checkpoint.interval.ms": ("500", "5000"),
    "replica.high.watermark.checkpoint.interval.ms": ("200", "5000"),
    "metadata.log.max.record.bytes.between.snapshots": ("500", "3000"),
    "metadata.log.max.snapshot.interval.ms": ("200", "2000"),
    "log.retention.check.interval.ms": ("300", "2000"),
    "auto.leader.rebalance.enable": ("true",),
    "leader.imbalance.check.interval.seconds": ("2", "5"),
    "unclean.leader.election.interval.ms": ("1000",),
    "producer.id.expiration.ms": ("16000", "25000"),
}
"""Values of broker properties. `producer.id.expiration.ms` is longer than the `delivery.timeout.ms` of any client."""


NO_OP_BATCH_BYTES: Final = 72
"""Size of a batch of the metadata log with one NoOpRecord. With this limit, each such batch causes a snapshot."""
_TOGETHER: Final[dict[str, tuple[Properties, Properties]]] = {
    "short-metadata-log": (
        (),
        (
            ("metadata.log.max.record.bytes.between.snapshots", str(NO_OP_BATCH_BYTES)),
            ("metadata.max.retention.bytes", "500"),
        ),
    ),
    "short-sessions": ((), (("broker.session.timeout.ms", "2000"),)),
    "short-lag": ((), (("replica.lag.time.max.ms", "1000"),)),
    "retention-by-size": (
        (("retention.ms", "-1"), ("retention.bytes", "500"), ("segment.index.bytes", "12")),
        (("log.retention.check.interval.ms", "300"),),
    ),
    "rebalance": (
        (),
        (("auto.leader.rebalance.enable", "true"), ("leader.imbalance.check.interval.seconds", "2")),
    ),
    "timed-flush": ((("flush.ms", "300"),), (("log.flush.scheduler.interval.ms", "200"),)),
}
"""By name, topic properties and broker properties that are used together."""

_GO_WITH: Final = {
    "left-behind": "short-metadata-log",
    "late-requests": "short-sessions",
    "late-leader": "short-lag",
}
"""By kind of fault, the entry of `_TOGETHER` without which the fault has no effect."""


_AT_TIMES: Final = ("short-metadata-log", "timed-flush", "retention-by-size", "rebalance")
"""Entries of `_TOGETHER` of which a trial sometimes has one, independent of its faults."""


@dataclass(frozen=True, slots=True)
class Swarm:
    """Shape of one trial, and the only kinds of clients and faults and names of properties that it may use.

    :ivar together: names of entries of `_TOGETHER`.
    """

    shape: Shape
    clients: tuple[str, ...]
    faults: tuple[str, ...]
    topic_settings: tuple[str, ...]
    cluster_settings: tuple[str, ...]
    together: tuple[str, ...]

    def fixed(self, of: int) -> Properties:
        """Return the properties from `_TOGETHER`: topic properties if `of` is 0, broker properties if it is 1."""
        names = dict.fromkeys((*self.together, *(_GO_WITH[kind] for kind in self.faults if kind in _GO_WITH)))
        if self.shape.nodes == 1:  # with one node, the invariants cannot check deleted records of the metadata log
            names.pop("short-metadata-log", None)
        return tuple(setting for name in names for setting in _TOGETHER[name][of])


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    """Draw a trial for a simulated cluster."""
    swarm = draw(_swarms())
    shape = swarm.shape
    return Trial(
        cluster=ClusterSettings(shape.nodes, shape.roles, _drawn(draw, swarm.cluster_settings, swarm.fixed(1))),
        topics=tuple(
            Topic(name, partitions, shape.replication_factor, _drawn(draw, swarm.topic_settings, swarm.fixed(0)))
            for name, partitions in shape.topics
        ),
        clients=_fit_for(draw(client_lists(shape, swarm.clients)), swarm.topic_settings),
        schedule=draw(schedules(shape, swarm.faults)),
        seed=draw(st.integers(0, _SEED_MAX)),
    )


def _fit_for(clients: tuple[Client, ...], topic_settings: tuple[str, ...]) -> tuple[Client, ...]:
    """Make idempotent producers send keys if a topic may be compacted, so that no batch is rejected for a missing key.

    After a rejected batch, an idempotent producer decreases the sequence numbers of the later batches in flight. The
    broker may already have accepted one of these with its old number. It then takes the batch that has this number now
    for a duplicate, and drops it. The same happens with Kafka's own producer.

    Producers without idempotence may omit keys and be rejected.
    """
    if "cleanup.policy" not in topic_settings:
        return clients
    return tuple(_keyed(client) if isinstance(client, Producer) and client.idempotent else client for client in clients)


def _keyed(producer: Producer) -> Producer:
    return replace(
        producer,
        steps=tuple(
            replace(step, keys=max(step.keys, 2)) if isinstance(step, SendBatches) else step for step in producer.steps
        ),
    )


_NO_FAULTS: Final[SearchStrategy[tuple[str, ...]]] = st.just(())


@cache
def _swarms() -> SearchStrategy[Swarm]:
    return st.builds(
        Swarm,
        shape=st.sampled_from(_SHAPES),
        clients=some(tuple(CLIENT_KINDS), 1, 6),
        faults=chosen(_NO_FAULTS, *(some(tuple(SIMULATED_KINDS), 1, 4),) * 9),
        topic_settings=some(tuple(_TOPIC_SETTINGS), 0, 4),
        cluster_settings=some(tuple(_CLUSTER_SETTINGS), 0, 4),
        together=st.sampled_from(((),) * 11 + tuple((name,) for name in _AT_TIMES)),
    )


def _shapes(nodes: int = 3, replication_factor: int = 3, roles: tuple[tuple[int, str], ...] = ()) -> tuple[Shape, ...]:
    return tuple(Shape(nodes, roles, topics, replication_factor) for topics in _TOPICS)


_TOPICS: Final = ((("a", 1),), (("a", 2),), (("a", 1), ("b", 1)), (("a", 3), ("b", 2)))
_APART: Final = (*((node, "broker") for node in (1, 2, 3)), *((node, "controller") for node in (4, 5, 6)))

_SHAPES: Final = (
    *_shapes() * 4,
    *_shapes(replication_factor=2),
    *_shapes(nodes=4),
    *_shapes(nodes=5)[:2],
    *_shapes(nodes=4, roles=((4, "controller"),))[:2],
    *_shapes(nodes=6, roles=_APART)[:2],
    *_shapes(nodes=4, roles=((3, "broker"), (4, "broker")))[:1],
    *_shapes(nodes=1, replication_factor=1)[:2],
)
"""The shapes of trials. Most have three nodes, which are both broker and controller."""


def _drawn(draw: st.DrawFn, names: tuple[str, ...], fixed: Properties) -> Properties:
    taken = dict(fixed)
    return (*fixed, *(draw(_settings(name)) for name in names if name not in taken))


@cache
def _settings(name: str) -> SearchStrategy[tuple[str, str]]:
    values = _TOPIC_SETTINGS.get(name) or _CLUSTER_SETTINGS[name]
    return st.sampled_from([(name, value) for value in values])
