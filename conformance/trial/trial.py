"""A trial: one cluster, its topics, the clients at work on them, and a schedule of faults.

A trial is a plain value. Its `repr` is Python source, and it has a stable JSON form (`conformance.trial.saved`). It
means the same on every target. In virtual time (`chaos.simulation.run`) it gives the same run each time, bit for bit.
On a started cluster (`chaos.live.run`) it runs in real time.

A run goes through phases: *steady* (`steady_ms`), *faulty* (until the last fault of the schedule is over), *healed*.
Afterwards fresh clients read everything back.

The trial of a concurrent requirement has moves in place of a schedule, and clients with steps for each phase; the
requirement's history checks are its post-condition (`conformance.concurrent.run`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from conformance.trial.moves import Move
from conformance.trial.phased_clients import PhasedClient
from conformance.trial.workloads import (
    Administrator,
    Committer,
    Keyed,
    LeaderReader,
    OneByOne,
    Pipelined,
    Retrying,
    Tail,
    Workload,
)
from fixtures.clients.steps import (
    AlterTopicConfig,
    Consumer,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    Producer,
    RawStep,
    RequestClient,
    SteppingClient,
)
from fixtures.faults import Configure, RestartWith, Timed
from fixtures.python_source import AsPython

CLIENTS_MS = 120_000
"""Time for which clients with steps may continue after the last fault."""
_BROKER_PROPERTIES: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "flush.messages": "log.flush.interval.messages",
    "message.timestamp.type": "log.message.timestamp.type",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
}
"""Broker properties that are the defaults of topics' properties."""

Client = (
    Producer
    | Consumer
    | RequestClient
    | Pipelined
    | OneByOne
    | Retrying
    | Keyed
    | Tail
    | LeaderReader
    | Committer
    | Administrator
    | PhasedClient
)
"""A client with steps, with or without phases, or a workload."""


class Placement(StrEnum):
    """Placement of a topic's replicas on nodes."""

    BY_CLUSTER = "by-cluster"
    """The cluster assigns the replicas."""
    ONE_LEADER = "one-leader"
    """All partitions have the same replicas in the same order."""
    CONTROLLER_LEADS = "controller-leads"
    """Partition 0 is led by the active controller, each further one by the next node."""
    CONTROLLER_FOLLOWS = "controller-follows"
    """Partition 0 is led by the node after the active controller, each further one by the next node.

    With a replica on every node, the controller is the last replica of partition 0.
    """


@dataclass(frozen=True, slots=True, repr=False)
class ClusterSettings(AsPython):
    """Settings of the cluster, whose node ids are 1 to `nodes`.

    :param roles: Kafka's `process.roles`, by node id, of the nodes that are not both broker and controller.
    :param properties: Kafka properties of every node; they override those that every trial has.
    """

    nodes: int = 3
    roles: tuple[tuple[int, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Topic(AsPython):
    """A topic that exists when the clients begin. `properties` are Kafka's topic configurations."""

    name: str = "a"
    partitions: int = 1
    replication_factor: int = 3
    properties: tuple[tuple[str, str], ...] = ()
    placement: Placement = Placement.BY_CLUSTER


@dataclass(frozen=True, slots=True, repr=False)
class Trial(AsPython):
    """One trial.

    :param seed: seed of all randomness in virtual time: delays, elections, the bytes that survive a power cut.
    :param topics: the topics. Roles of replicas, and faults of a partition, refer to partition 0 of the first topic.
    :param healed_ms: time for which workloads continue after the cluster has recovered.
    :param waits_for_recovery: whether a run on a started cluster pauses the schedule whenever no fault is in force,
        until the cluster has recovered.
    :param moves: faults, waits and requests of the faulty phase, one after the other. Link faults among the first
        moves are in force before a writer's first step in this phase.
    :param requirement: id of the concurrent requirement whose history checks are the post-condition; empty: none.
    """

    seed: int = 0
    cluster: ClusterSettings = ClusterSettings()
    topics: tuple[Topic, ...] = (Topic(),)
    clients: tuple[Client, ...] = ()
    schedule: tuple[Timed, ...] = ()
    steady_ms: int = 1_000
    healed_ms: int = 1_000
    waits_for_recovery: bool = False
    moves: tuple[Move, ...] = ()
    requirement: str = ""

    @property
    def topic(self) -> Topic:
        """The first topic."""
        return self.topics[0]

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Clients without steps."""
        return tuple(each for each in self.clients if isinstance(each, Workload))

    @property
    def stepping(self) -> tuple[SteppingClient, ...]:
        """Clients with steps."""
        return tuple(each for each in self.clients if isinstance(each, SteppingClient))

    @property
    def phased(self) -> tuple[PhasedClient, ...]:
        """Clients with steps for each phase."""
        return tuple(each for each in self.clients if isinstance(each, PhasedClient))

    @property
    def raw_steps(self) -> tuple[RawStep, ...]:
        """Steps of raw clients."""
        return tuple(step for client in self.clients if isinstance(client, RequestClient) for step in client.steps)

    @property
    def created_topics(self) -> tuple[CreateTopic, ...]:
        """Steps that create topics."""
        return tuple(step for step in self.raw_steps if isinstance(step, CreateTopic))

    @property
    def deleted_topics(self) -> frozenset[str]:
        """Names of the topics that clients delete."""
        return frozenset(step.topic for step in self.raw_steps if isinstance(step, DeleteTopic))

    @property
    def end_ms(self) -> int:
        """Time from the start of the faulty phase to the end of the last fault of the schedule."""
        return max((timed.at_ms + timed.for_ms for timed in self.schedule), default=0)

    @property
    def group(self) -> str | None:
        """The group of the first client that has one, or None."""
        for client in self.clients:
            if isinstance(client, Committer):
                return client.group_of(self.topic.name)
            if isinstance(client, Consumer) and client.group:
                return client.group
        return None

    def under_load(self, times: int) -> "Trial":
        """Return the trial with the records per batch of producing workloads, except `Keyed`, multiplied by `times`."""
        clients = (
            replace(each, records=each.records * times) if isinstance(each, Pipelined | OneByOne | Retrying) else each
            for each in self.clients
        )
        return replace(self, clients=tuple(clients))

    @property
    def flushed_topics(self) -> frozenset[str]:
        """Names of the topics with flush.messages=1 at all times: acknowledged records survive any loss of power."""
        return frozenset(name for name in self.topic_names if set(self.values_of(name, "flush.messages")) == {"1"})

    @property
    def compacted_topics(self) -> frozenset[str]:
        """Names of the topics from which compaction may remove records."""
        return frozenset(
            name
            for name in self.topic_names
            if any("compact" in (value or "") for value in self.values_of(name, "cleanup.policy"))
        )

    @property
    def shortened_topics(self) -> frozenset[str]:
        """Names of the topics whose records may be deleted: by compaction, by retention, or on request."""
        limits = ("retention.bytes", "retention.ms")
        retained = (
            name
            for name in self.topic_names
            if any(value not in {None, "-1"} for limit in limits for value in self.values_of(name, limit))
        )
        on_request = (step.topic for step in self.raw_steps if isinstance(step, DeleteRecords))
        return self.compacted_topics.union(retained, on_request)

    @property
    def may_replace_timestamps(self) -> bool:
        """Whether a broker may replace timestamps of records. The checksums in records then do not cover timestamps."""
        return any("LogAppendTime" in self.values_of(name, "message.timestamp.type") for name in self.topic_names)

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names of all topics, those that clients create included."""
        return tuple(dict.fromkeys(name for name, _ in self._created))

    @property
    def _created(self) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
        """Yield the name and the initial properties of each topic."""
        yield from ((topic.name, topic.properties) for topic in self.topics)
        yield from ((step.topic, step.properties) for step in self.created_topics)

    def values_of(self, topic: str, name: str) -> Iterator[str | None]:
        """Yield each value that a topic's property has at some time. None is Kafka's default."""
        default = dict(self.cluster.properties).get(_BROKER_PROPERTIES[name])
        yield from (dict(properties).get(name, default) for each, properties in self._created if each == topic)
        for timed in self.schedule:
            match timed.fault:
                case Configure() as fault if fault.name == name and topic == self.topic.name:
                    yield from (fault.value, default)
                case RestartWith() as fault if fault.name == _BROKER_PROPERTIES[name]:
                    yield fault.value
        for step in self.raw_steps:
            if isinstance(step, AlterTopicConfig) and (step.topic, step.name) == (topic, name):
                yield step.value
