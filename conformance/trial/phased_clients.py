"""Clients of a trial with steps for each of its phases, as concurrent requirements have them.

*steady*: no fault. *faulty*: the moves are made one after the other; the phase lasts until all faults are healed and
all steps are done. *healed*: no fault again. Producers do not wait for outcomes between phases, so that records are in
flight when a fault begins and ends. Readers read in all phases, and afterwards a new consumer reads everything back.
"""

from dataclasses import dataclass
from enum import StrEnum

from fixtures.clients.payload import SIZE_MIN
from fixtures.clients.steps import Flush, Idle
from fixtures.faults import Node, Role
from fixtures.python_source import AsPython


class Phase(StrEnum):
    """The phases of a run, in order; each is a field of the clients that have steps."""

    STEADY = "steady"
    FAULTY = "faulty"
    HEALED = "healed"


@dataclass(frozen=True, slots=True, repr=False)
class SendRecords(AsPython):
    """Sends of `records` records, each with a value of `size` bytes. A raw producer sends them as one batch."""

    records: int
    size: int = SIZE_MIN


@dataclass(frozen=True, slots=True, repr=False)
class AwaitNodeFault(AsPython):
    """Pause until the nemesis has killed or paused a node."""


@dataclass(frozen=True, slots=True, repr=False)
class Trickle(AsPython):
    """Sends of at most `records_max` single records, with a pause after each, until the nemesis is done."""

    pause_ms: int
    records_max: int = 2_000


Step = SendRecords | Idle | Flush | AwaitNodeFault | Trickle


@dataclass(frozen=True, slots=True, repr=False)
class PipelinedProducer(AsPython):
    """librdkafka's producer, which forms batches, retries, and keeps several requests in flight.

    :ivar delivery_timeout_ms: time after which a record fails. Records of one batch expire one by one, and librdkafka
        writes a batch twice if some of its records have expired (docs/findings.md). If a duplicate would be a
        violation, this time must be longer than any fault.
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


@dataclass(frozen=True, slots=True, repr=False)
class OneShotProducer(AsPython):
    """A raw producer that sends one batch at a time, each once, to the node that leads when the script starts."""

    partition: int = 0
    acks: int = -1
    idempotent: bool = False
    records_leader_epoch: bool = True
    """Whether to request the leader epoch before and after an acks=all batch.

    A batch for a paused node then waits until the first of these requests has a response or times out.
    """
    steady: tuple[Step, ...] = ()
    faulty: tuple[Step, ...] = ()
    healed: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class WatermarkReader(AsPython):
    """A raw reader of one partition: sends Fetch and ListOffsets in turn to the node that leads it at the start."""

    partition: int = 0
    max_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class MetadataWatcher(AsPython):
    """A client that sends Metadata for the topic (leader, epoch, ISR) to one node every `period_ms`."""

    node: Node = Role.FIRST_REPLICA
    period_ms: int = 200
    cluster: bool = False
    """Whether to send DescribeCluster and DescribeQuorum, too."""


@dataclass(frozen=True, slots=True, repr=False)
class TopicCreator(AsPython):
    """A client that creates topics in the faulty phase by requests to one node, with a pause after each.

    It creates at most `topics_max` topics before the nemesis has killed or paused a node, and at most `topics_max`
    afterwards.
    """

    node: Node
    topics_max: int
    pause_ms: int


PhasedClient = PipelinedProducer | OneShotProducer | WatermarkReader | MetadataWatcher | TopicCreator
