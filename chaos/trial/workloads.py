"""Clients of a trial that work for as long as its faults last: each does one thing again and again.

On a real cluster time passes by itself, so a workload has no steps. In virtual time it stands for clients with steps
(`chaos.trial.unrolled`).
"""

from dataclasses import dataclass

from fixtures.python_source import AsPython


@dataclass(frozen=True, slots=True, repr=False)
class Pipelined(AsPython):
    """librdkafka's producer: it retries, and sends to all partitions in turn, a burst and a pause.

    :param in_flight_max: with more than one, librdkafka 2.16 writes a record twice to a correct cluster: it retries
        after OUT_OF_ORDER_SEQUENCE_NUMBER from a new leader.
    """

    idempotent: bool = True
    acks: int = -1
    in_flight_max: int = 1
    records: int = 10
    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class OneByOne(AsPython):
    """A raw producer for each partition: one batch at a time to whoever leads, sent once, with a pause after each.

    :param idempotent: with a producer id, a new one after each outcome that is not known; needs acks -1.
    :param timeout_ms: how long a broker may hold a batch that waits for replicas.
    """

    acks: int = -1
    idempotent: bool = False
    records: int = 3
    pause_ms: int = 100
    timeout_ms: int = 5_000


@dataclass(frozen=True, slots=True, repr=False)
class Retrying(AsPython):
    """A raw idempotent producer for each partition that retries as Java's producer does, several batches in flight."""

    in_flight_max: int = 5
    records: int = 3
    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class Keyed(AsPython):
    """A raw producer for each partition that writes few keys again and again, now and then a tombstone."""

    keys: int = 5
    pause_ms: int = 50


@dataclass(frozen=True, slots=True, repr=False)
class Tail(AsPython):
    """librdkafka's consumer: it reads all partitions from their start, and continues."""


@dataclass(frozen=True, slots=True, repr=False)
class LeaderReader(AsPython):
    """A raw reader for each partition, which sends Fetch and ListOffsets to the leader by turns."""

    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class Committer(AsPython):
    """Commits an offset for each partition to the coordinator of a group, fetches the offsets, and repeats.

    It is not a member of the group. Its offsets rise, and are not positions of a consumer.
    """

    pause_ms: int = 100

    def group_of(self, topic: str) -> str:
        """The group's name."""
        return f"{topic}-committers"


@dataclass(frozen=True, slots=True, repr=False)
class Administrator(AsPython):
    """Creates a topic of its own, alters it and deletes it, again and again."""

    pause_ms: int = 300


Workload = Pipelined | OneByOne | Retrying | Keyed | Tail | LeaderReader | Committer | Administrator

DELIVERY_TIMEOUT_MS = 60_000
"""Longer than any election: an idempotent producer that gives up has met a cluster that did not recover."""
STEADY_MS = 2_000
"""Time for which workloads run before the first fault."""
