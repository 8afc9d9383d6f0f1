"""A concurrent script: several clients at work on one fresh topic, while links are cut and healed.

A script is a plain value. Hypothesis draws and shrinks it, `repr` prints it as Python, and running it twice sends the
same records (in whatever order the threads come by).

A run has three phases, and every client has steps for each. *steady*: nothing is broken. *faulty*: the cuts come and go
on their schedule, counted from the start of the phase, which lasts until all are healed and all steps are done.
*healed*: the cluster is whole again. Producers do not wait for outcomes between phases, so records are in flight across
a cut's begin and end. Readers read through all phases, and afterwards fresh consumers read everything back.
"""

from dataclasses import dataclass
from enum import StrEnum

from fixtures.clients.payload import SIZE_MIN
from fixtures.targets.target import Lost


class Phase(StrEnum):
    """The phases of a run, in order; each is a field of the clients that have steps."""

    STEADY = "steady"
    FAULTY = "faulty"
    HEALED = "healed"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The topic, made for this script alone. `properties` are Kafka's topic configurations."""

    partitions: int = 1
    replication_factor: int = 1
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """Send so many records, each with a value of `size` bytes. A raw producer sends them as one batch."""

    records: int
    size: int = SIZE_MIN


@dataclass(frozen=True, slots=True)
class Pause:
    """Send nothing for a while; outcomes still come in."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class AwaitOutcomes:
    """Send nothing until every record sent so far has its outcome."""


Step = Send | Pause | AwaitOutcomes


@dataclass(frozen=True, slots=True)
class PipelinedProducer:
    """librdkafka's producer: batches by itself, retries, and keeps several requests in flight."""

    partition: int = 0
    acks: int = -1
    idempotent: bool = True
    in_flight_max: int = 5
    linger_ms: int = 0
    batch_records_max: int = 10_000
    compression: str = "none"
    steady: tuple[Step, ...] = ()
    faulty: tuple[Step, ...] = ()
    healed: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class OneShotProducer:
    """A raw producer: one batch at a time to the leader, sent once, in a leader epoch that it learns."""

    partition: int = 0
    acks: int = -1
    idempotent: bool = False
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


@dataclass(frozen=True, slots=True)
class MetadataWatcher:
    """Asks the leader of partition 0 for the topic's metadata (leader, epoch, ISR), at least so often."""

    period_ms: int = 200


Client = PipelinedProducer | OneShotProducer | Consumer | WatermarkReader | MetadataWatcher


class Role(StrEnum):
    """One end of a link, by what it is to partition 0 when the script starts."""

    CLIENT = "client"
    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(frozen=True, slots=True)
class Cut:
    """Lose one direction of a link, from `at_ms` into the faulty phase on, for `for_ms`.

    Between two nodes only replication is cut; heartbeats and metadata still pass.
    """

    source: Role
    destination: Role
    at_ms: int
    for_ms: int
    lost: Lost = Lost.REQUESTS

    def __repr__(self) -> str:
        """As Python: a StrEnum's own repr is none."""
        return (
            f"Cut(source=Role.{self.source.name}, destination=Role.{self.destination.name}, "
            f"at_ms={self.at_ms}, for_ms={self.for_ms}, lost=Lost.{self.lost.name})"
        )


@dataclass(frozen=True, slots=True)
class Script:
    """One script."""

    topic: TopicSettings
    clients: tuple[Client, ...]
    cuts: tuple[Cut, ...] = ()
