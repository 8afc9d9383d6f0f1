"""Clients of a trial that go from step to step: producers, consumers and clients of single requests.

They are state machines without IO (`chaos.simulation.clients`): the simulation drives them in virtual time, and
`chaos.live.stepping` over sockets. A client begins with the steady phase and goes from step to step, whatever the
phase; the healed phase begins once all clients are through, or their time is over.
"""

from dataclasses import dataclass

from fixtures.faults import Node
from fixtures.python_source import AsPython

# --- steps of any client


@dataclass(frozen=True, slots=True, repr=False)
class Idle(AsPython):
    """Send nothing for a while; responses are still received."""

    duration_ms: int


# --- a producer


@dataclass(frozen=True, slots=True, repr=False)
class SendBatches(AsPython):
    """Send batches to a partition, with a pause after each; nothing waits for an outcome.

    :param value_bytes: size of each record's value, at least that of a payload.
    :param keys: number of different keys, used in turn; 0: the records have no key.
    """

    batches: int = 1
    records: int = 1
    pause_ms: int = 0
    topic: str = "a"
    partition: int = 0
    value_bytes: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Flush(AsPython):
    """Send nothing until every batch has its outcome, as `KafkaProducer.flush`."""


ProducerStep = SendBatches | Flush | Idle


@dataclass(frozen=True, slots=True, repr=False)
class Producer(AsPython):
    """A producer that retries until `delivery_timeout_ms`, as Kafka's do.

    :param idempotent: with a producer id, epochs and sequences; needs acks -1.
    :param in_flight_max: batches without a response, for each partition.
    :param by_name: uses the last version of Produce with topic names instead of topic ids.
    :param compression: Kafka's `compression.type`.
    """

    steps: tuple[ProducerStep, ...] = ()
    idempotent: bool = True
    acks: int = -1
    in_flight_max: int = 5
    delivery_timeout_ms: int = 20_000
    request_timeout_ms: int = 5_000
    retry_backoff_ms: int = 100
    by_name: bool = False
    compression: str = "none"


# --- a consumer


@dataclass(frozen=True, slots=True, repr=False)
class Poll(AsPython):
    """Fetch from its partitions in turn, `times` times, with a pause after each."""

    times: int = 1
    pause_ms: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class CommitOffsets(AsPython):
    """Commit the positions of its partitions to its group."""


@dataclass(frozen=True, slots=True, repr=False)
class FetchOffsets(AsPython):
    """Fetch the offsets that its group has committed."""


@dataclass(frozen=True, slots=True, repr=False)
class Seek(AsPython):
    """Set the position of a partition.

    :param offset: null: the end offset that ListOffsets returns.
    """

    offset: int | None = 0
    topic: str = "a"
    partition: int = 0


ConsumerStep = Poll | CommitOffsets | FetchOffsets | Seek | Idle


@dataclass(frozen=True, slots=True, repr=False)
class Consumer(AsPython):
    """A consumer that assigned itself its partitions, from offset 0 on.

    :param partitions: topics and partition numbers.
    :param group: consumer group that it commits offsets to; empty: none.
    :param checks_epochs: sends its leader epoch in Fetch, and detects truncation by OffsetForLeaderEpoch (KIP-320).
    :param by_name: uses the last version of Fetch with topic names instead of topic ids.
    """

    steps: tuple[ConsumerStep, ...] = ()
    partitions: tuple[tuple[str, int], ...] = (("a", 0),)
    group: str = ""
    isolation: str = "read_uncommitted"
    max_bytes: int = 65_536
    max_wait_ms: int = 100
    checks_epochs: bool = True
    by_name: bool = False


# --- a client of single requests


@dataclass(frozen=True, slots=True, repr=False)
class ListOffsets(AsPython):
    """Send ListOffsets, `times` times, with a pause after each.

    :param node: destination; null: the leader in the client's metadata.
    :param timestamp: -1 the end, -2 the start, -3 the record of the largest time; else milliseconds since the clients
        began, of which the first record that is not older is wanted.
    """

    times: int = 1
    pause_ms: int = 0
    topic: str = "a"
    partition: int = 0
    node: Node | None = None
    isolation: str = "read_uncommitted"
    timestamp: int = -1


@dataclass(frozen=True, slots=True, repr=False)
class OffsetForLeaderEpoch(AsPython):
    """Send OffsetForLeaderEpoch to the leader, for the epoch `epochs_ago` before its own."""

    epochs_ago: int = 1
    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Metadata(AsPython):
    """Send Metadata, `times` times, with a pause after each. `node` is null: to any node."""

    times: int = 1
    pause_ms: int = 0
    topic: str = "a"
    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ApiVersions(AsPython):
    """Send ApiVersions; later requests to this node use the newest version that both support."""

    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Fetch(AsPython):
    """Send one Fetch.

    :param node: destination; null: the leader in the client's metadata.
    :param offset: null: the high watermark of the latest response.
    :param epoch_ahead: leader epoch in the request, relative to the one in the client's metadata; null: none.
    """

    offset: int | None = 0
    topic: str = "a"
    partition: int = 0
    node: Node | None = None
    epoch_ahead: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Produce(AsPython):
    """Send one batch and wait for its response, without any retry.

    :param node: destination; null: the leader in the client's metadata.
    :param copies: number of times that the same bytes are sent, one after the other.
    :param idempotent: with this client's producer id, and sequence numbers.
    :param skips: number of sequence numbers that are skipped before the batch.
    :param corrupt: a bit of the records is flipped, so that the CRC does not match.
    """

    records: int = 1
    topic: str = "a"
    partition: int = 0
    node: Node | None = None
    acks: int = -1
    copies: int = 1
    idempotent: bool = False
    skips: int = 0
    corrupt: bool = False
    api_version: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class MalformedRequest(AsPython):
    """Send bytes that are no request, or a request of an unsupported version.

    :param api_key: of the header; the body is `size` arbitrary bytes.
    """

    api_key: int = 0
    api_version: int = 99
    size: int = 16
    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class DeleteRecords(AsPython):
    """Move the log start up.

    :param before: the new start; null: the high watermark.
    """

    before: int | None = None
    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class CreateTopic(AsPython):
    """Create a topic."""

    topic: str
    partitions: int = 1
    replication_factor: int = 3
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class DeleteTopic(AsPython):
    """Delete a topic."""

    topic: str


@dataclass(frozen=True, slots=True, repr=False)
class CreatePartitions(AsPython):
    """Increase the number of partitions of a topic to `total`."""

    total: int
    topic: str = "a"


@dataclass(frozen=True, slots=True, repr=False)
class AlterTopicConfig(AsPython):
    """Set a configuration of a topic; it stays.

    :param validate_only: the broker only validates the request.
    """

    name: str
    value: str
    topic: str = "a"
    validate_only: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class ReassignPartition(AsPython):
    """Reassign a partition to these nodes; null: cancel its reassignment. Nothing waits for the completion."""

    replicas: tuple[int, ...] | None
    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class ElectPreferredLeader(AsPython):
    """Send ElectLeaders for the preferred replica."""

    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Describe(AsPython):
    """Send one of the describing requests to any node.

    :param subject: one of `chaos.simulation.clients.descriptions`.
    """

    subject: str = "cluster"
    topic: str = "a"


RawStep = (
    ListOffsets
    | OffsetForLeaderEpoch
    | Metadata
    | ApiVersions
    | Fetch
    | Produce
    | MalformedRequest
    | DeleteRecords
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | AlterTopicConfig
    | ReassignPartition
    | ElectPreferredLeader
    | Describe
    | Idle
)


@dataclass(frozen=True, slots=True, repr=False)
class RequestClient(AsPython):
    """Sends each request of its steps once, and learns leaders and epochs from the responses.

    :param first_sequence: of its idempotent batches in each partition; 0 follows 2³¹ - 1.
    """

    steps: tuple[RawStep, ...] = ()
    timeout_ms: int = 2_000
    first_sequence: int = 0


SteppingClient = Producer | Consumer | RequestClient
