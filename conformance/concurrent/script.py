"""Concurrent script: several clients on one new topic while a nemesis injects and heals faults.

A script is a plain value. Hypothesis draws and shrinks it, `repr` prints it as Python, and two runs send the same
records (the threads' order may differ).

A run has three phases, and every client has steps for each. *steady*: no fault. *faulty*: the nemesis makes its moves
one after the other; the phase lasts until all faults are healed and all steps are done. *healed*: no fault again.
Producers do not wait for outcomes between phases, so records are in flight when a fault begins and ends. Readers read
in all phases, and afterwards new consumers read everything back.
"""

from dataclasses import dataclass
from enum import StrEnum

from conformance.concurrent.moves import Move
from fixtures.clients.payload import SIZE_MIN
from fixtures.clients.steps import Flush, Idle
from fixtures.faults import Node, Role
from fixtures.python_source import AsPython


class Phase(StrEnum):
    """The phases of a run, in order; each is a field of the clients that have steps."""

    STEADY = "steady"
    FAULTY = "faulty"
    HEALED = "healed"


class Placement(StrEnum):
    """Placement of a topic's replicas on nodes."""

    BY_CLUSTER = "by-cluster"
    """The cluster assigns the replicas."""
    ONE_LEADER = "one-leader"
    """All partitions have the same replicas in the same order."""
    CONTROLLER_LEADS = "controller-leads"
    """Partition 0 is led by the active controller, each further one by the next node."""
    CONTROLLER_FOLLOWS = "controller-follows"
    """The active controller is the last replica of partition 0; each further partition is led by the next node."""


@dataclass(frozen=True, slots=True, repr=False)
class TopicSettings(AsPython):
    """Topic of one script. `properties` are Kafka's topic configurations."""

    partitions: int = 1
    replication_factor: int = 1
    properties: tuple[tuple[str, str], ...] = ()
    placement: Placement = Placement.BY_CLUSTER


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Send `records` records, each with a value of `size` bytes. A raw producer sends them as one batch."""

    records: int
    size: int = SIZE_MIN


@dataclass(frozen=True, slots=True)
class AwaitNodeFault:
    """Send nothing until the nemesis has killed or paused a node."""


@dataclass(frozen=True, slots=True)
class Trickle:
    """Send one record after the other, with a pause after each, until the nemesis is done."""

    pause_ms: int
    records_max: int = 2_000


Step = SendRecords | Idle | Flush | AwaitNodeFault | Trickle


@dataclass(frozen=True, slots=True)
class PipelinedProducer:
    """librdkafka's producer: batches by itself, retries, and keeps several requests in flight.

    :ivar delivery_timeout_ms: Time after which a record fails. Records of one batch expire one by one, and a batch of
        which some have expired is written twice (docs/findings.md): longer than any fault if that would be a violation.
    """

    partition: int = 0
    acks: int = -1
    idempotent: bool = True
    in_flight_max: int = 5
    linger_ms: int = 0
    batch_records_max: int = 10_000
    compression: str = "none"
    delivery_timeout_ms: int = 30_000
    steady: tuple[Step, ...] = ()
    faulty: tuple[Step, ...] = ()
    healed: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class OneShotProducer:
    """A raw producer: one batch at a time to the node that leads when the script starts, sent once."""

    partition: int = 0
    acks: int = -1
    idempotent: bool = False
    records_leader_epoch: bool = True
    """Request the leader epoch before and after an acks=all batch; a node that is paused then gets no batch."""
    steady: tuple[Step, ...] = ()
    faulty: tuple[Step, ...] = ()
    healed: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Consumer:
    """librdkafka's consumer, which reads all partitions from the start."""

    isolation: str = "read_uncommitted"
    poll_records_max: int = 500


@dataclass(frozen=True, slots=True)
class WatermarkReader:
    """A raw reader of one partition: sends Fetch and ListOffsets to its leader in turn."""

    partition: int = 0
    max_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class MetadataWatcher(AsPython):
    """Sends Metadata for the topic (leader, epoch, ISR) to one node every `period_ms`."""

    node: Node = Role.FIRST_REPLICA
    period_ms: int = 200
    cluster: bool = False
    """Also send DescribeCluster and DescribeQuorum."""


@dataclass(frozen=True, slots=True, repr=False)
class TopicCreator(AsPython):
    """Sends CreateTopics to one node in the faulty phase, one after the other with a pause after each.

    At most `topics_max` topics before the nemesis has killed or paused a node, and as many afterwards.
    """

    node: Node
    topics_max: int
    pause_ms: int


Client = PipelinedProducer | OneShotProducer | Consumer | WatermarkReader | MetadataWatcher | TopicCreator


@dataclass(frozen=True, slots=True)
class ConcurrentScript:
    """One script."""

    topic: TopicSettings
    clients: tuple[Client, ...]
    nemesis: tuple[Move, ...] = ()
    """Moves of the faulty phase. Faults of links at their start are in force before any writer's first step in it."""
