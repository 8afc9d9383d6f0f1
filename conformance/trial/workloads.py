"""Workloads: clients that repeat the same operations in all phases of a trial.

A real cluster runs in real time, so the number of operations is not known in advance, and a workload has no steps. In
virtual time, a workload is replaced by clients with steps (`conformance.trial.unrolled`).
"""

from dataclasses import dataclass

from fixtures.python_source import AsPython


@dataclass(frozen=True, slots=True, repr=False)
class Pipelined(AsPython):
    """librdkafka's producer: it retries, and sends bursts to all partitions in turn, with pauses.

    :param in_flight_max: maximum number of requests in flight. With more than one, librdkafka 2.16 may write a record
        twice to a correct cluster, because it retries after OUT_OF_ORDER_SEQUENCE_NUMBER from a new leader.
    """

    idempotent: bool = True
    acks: int = -1
    in_flight_max: int = 1
    records: int = 10
    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class OneByOne(AsPython):
    """A raw producer for each partition: it sends one batch at a time to the leader, once, with a pause after each.

    :param idempotent: whether it has a producer id; needs acks -1. The id is replaced after a batch that is not
        acknowledged.
    :param timeout_ms: time for which a broker may delay the response until replicas have the batch.
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
    """A raw producer for each partition that writes a few keys repeatedly, and occasional tombstones."""

    keys: int = 5
    pause_ms: int = 50


@dataclass(frozen=True, slots=True, repr=False)
class Tail(AsPython):
    """librdkafka's consumer: it reads all partitions from their start on."""

    isolation: str = "read_uncommitted"
    poll_records_max: int = 500


@dataclass(frozen=True, slots=True, repr=False)
class LeaderReader(AsPython):
    """A raw reader for each partition, which alternates Fetch and ListOffsets requests to the leader."""

    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class Committer(AsPython):
    """A client that repeatedly commits an offset for each partition to a group's coordinator, and fetches the offsets.

    It is not a member of the group. Its offsets increase; in real time, they are not positions of a consumer.
    """

    pause_ms: int = 100

    def group_of(self, topic: str) -> str:
        """Return the name of the group."""
        return f"{topic}-committers"


@dataclass(frozen=True, slots=True, repr=False)
class Administrator(AsPython):
    """A client that repeatedly creates a new topic, alters it and deletes it."""

    pause_ms: int = 300


Workload = Pipelined | OneByOne | Retrying | Keyed | Tail | LeaderReader | Committer | Administrator

DELIVERY_TIMEOUT_MS = 60_000
"""Longer than any election. So a batch of an idempotent producer expires only if the cluster does not recover."""
STEADY_MS = 2_000
"""Time for which workloads run before the first fault."""
