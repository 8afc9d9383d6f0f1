"""A concurrent script: several clients at work on one fresh topic, while a nemesis breaks the cluster and heals it.

A script is a plain value. Hypothesis draws and shrinks it, `repr` prints it as Python, and running it twice sends the
same records (in whatever order the threads come by).

A run has three phases, and every client has steps for each. *steady*: nothing is broken. *faulty*: the nemesis makes
its moves, one after the other; the phase lasts until all is healed and all steps are done. *healed*: the cluster is
whole again. Producers do not wait for outcomes between phases, so records are in flight across a fault's begin and
end. Readers read through all phases, and afterwards fresh consumers read everything back.
"""

from dataclasses import dataclass
from enum import StrEnum

from conformance.concurrent.moves import InitialRole, Move
from fixtures.clients.payload import SIZE_MIN
from fixtures.python_source import AsPython


class Phase(StrEnum):
    """The phases of a run, in order; each is a field of the clients that have steps."""

    STEADY = "steady"
    FAULTY = "faulty"
    HEALED = "healed"


class Placement(StrEnum):
    """On which nodes the partitions of a topic lie."""

    BY_CLUSTER = "by-cluster"
    """Where the cluster puts them."""
    ONE_LEADER = "one-leader"
    """All partitions have the same replicas in the same order."""
    CONTROLLER_LEADS = "controller-leads"
    """Partition 0 is led by the active controller, each further one by the next node."""
    CONTROLLER_FOLLOWS = "controller-follows"
    """The active controller is the last node in the order in which partition 0 has its replicas; then as above."""


@dataclass(frozen=True, slots=True, repr=False)
class TopicSettings(AsPython):
    """The topic, made for this script alone. `properties` are Kafka's topic configurations."""

    partitions: int = 1
    replication_factor: int = 1
    properties: tuple[tuple[str, str], ...] = ()
    placement: Placement = Placement.BY_CLUSTER


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Send so many records, each with a value of `size` bytes. A raw producer sends them as one batch."""

    records: int
    size: int = SIZE_MIN


@dataclass(frozen=True, slots=True)
class Idle:
    """Send nothing for a while; outcomes still come in."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Send nothing until every record sent so far has its outcome."""


@dataclass(frozen=True, slots=True)
class AwaitNodeFault:
    """Send nothing until the nemesis has killed or paused a node."""


@dataclass(frozen=True, slots=True)
class Trickle:
    """Send one record after the other, with a pause after each, until the nemesis is through."""

    pause_ms: int
    records_max: int = 2_000


Step = SendRecords | Idle | Flush | AwaitNodeFault | Trickle


@dataclass(frozen=True, slots=True)
class PipelinedProducer:
    """librdkafka's producer: batches by itself, retries, and keeps several requests in flight.

    :ivar delivery_timeout_ms: Time after which a record fails. Records of one batch expire one by one, and a batch of
        which some have expired is written twice (docs/findings.md): longer than any fault where that would be wrong.
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
    """Ask before and after an acks=all batch for the leader epoch; a node that is paused then gets no batch."""
    steady: tuple[Step, ...] = ()
    faulty: tuple[Step, ...] = ()
    healed: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Consumer:
    """librdkafka's consumer, reading all partitions from the start on."""

    isolation: str = "read_uncommitted"
    poll_records_max: int = 500


@dataclass(frozen=True, slots=True)
class WatermarkReader:
    """A raw reader of one partition: asks its leader by turns for records and for the end offset."""

    partition: int = 0
    max_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class MetadataWatcher(AsPython):
    """Asks one node for the topic's metadata (leader, epoch, ISR), at least so often."""

    node: InitialRole = InitialRole.LEADER
    period_ms: int = 200
    cluster: bool = False
    """Also which brokers the cluster has, and who leads the controller quorum."""


@dataclass(frozen=True, slots=True, repr=False)
class TopicCreator(AsPython):
    """Creates topics in the faulty phase, one after the other with a pause after each, asked of one node.

    At most so many before the nemesis has killed or paused a node, and so many afterwards.
    """

    node: InitialRole
    topics_max: int
    pause_ms: int


Client = PipelinedProducer | OneShotProducer | Consumer | WatermarkReader | MetadataWatcher | TopicCreator


@dataclass(frozen=True, slots=True)
class ConcurrentScript:
    """One script."""

    topic: TopicSettings
    clients: tuple[Client, ...]
    nemesis: tuple[Move, ...] = ()
    """The moves of the faulty phase. Cuts that stand first hold before any writer's first step of that phase."""
