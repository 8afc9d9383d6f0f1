"""Clients of a trial that go from step to step: producers, consumers and raw clients.

They are state machines without IO (`chaos.simulation.clients`): the simulation drives them in virtual time, and
`chaos.live.stepping` over sockets. A client begins with the steady phase and goes from step to step, whatever the
phase; the healed phase begins once all clients are through, or their time is over.
"""

from dataclasses import dataclass

from chaos.faults import Node
from conformance.concurrent.moves import AsPython

# --- steps of any client


@dataclass(frozen=True, slots=True, repr=False)
class Rest(AsPython):
    """Do nothing for a while; answers still come in."""

    duration_ms: int


# --- a producer


@dataclass(frozen=True, slots=True, repr=False)
class Send(AsPython):
    """Send so many batches to a partition, with a pause after each; nothing waits for an outcome.

    :param value_bytes: of each record's value; shorter than a payload can be is as short as it can be.
    :param keys: how many different ones the records have, by turns; 0: none.
    """

    batches: int = 1
    records: int = 1
    pause_ms: int = 0
    topic: str = "a"
    partition: int = 0
    value_bytes: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class AwaitOutcomes(AsPython):
    """Send nothing until every batch has its outcome."""


ProducerStep = Send | AwaitOutcomes | Rest


@dataclass(frozen=True, slots=True, repr=False)
class Producer(AsPython):
    """A producer that retries until `delivery_timeout_ms`, as Kafka's do.

    :param idempotent: with a producer id, epochs and sequences; needs acks -1.
    :param in_flight_max: batches that wait for an answer, by partition.
    :param by_name: speaks the last version of Produce that names a topic by its name, not by its id.
    :param compression: of its batches, as Kafka's `compression.type` has it.
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
    """Fetch so many times, from its partitions by turns, with a pause after each."""

    times: int = 1
    pause_ms: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Commit(AsPython):
    """Commit the positions of its partitions to its group."""


@dataclass(frozen=True, slots=True, repr=False)
class FetchOffsets(AsPython):
    """Ask for what its group has committed."""


@dataclass(frozen=True, slots=True, repr=False)
class Seek(AsPython):
    """Go on reading elsewhere.

    :param offset: null: at the end, as ListOffsets answers it.
    """

    offset: int | None = 0
    topic: str = "a"
    partition: int = 0


ConsumerStep = Poll | Commit | FetchOffsets | Seek | Rest


@dataclass(frozen=True, slots=True, repr=False)
class Consumer(AsPython):
    """A consumer that assigned itself its partitions, from offset 0 on.

    :param partitions: topics and partition numbers.
    :param group: where it commits offsets; empty: nowhere.
    :param checks_epochs: says in its fetches which epoch it knows, and looks where the one before ended (KIP-320).
    :param by_name: speaks the last version of Fetch that names a topic by its name, not by its id.
    """

    steps: tuple[ConsumerStep, ...] = ()
    partitions: tuple[tuple[str, int], ...] = (("a", 0),)
    group: str = ""
    isolation: str = "read_uncommitted"
    max_bytes: int = 65_536
    max_wait_ms: int = 100
    checks_epochs: bool = True
    by_name: bool = False


# --- a raw client


@dataclass(frozen=True, slots=True, repr=False)
class AskEnd(AsPython):
    """ListOffsets, so many times, with a pause after each.

    :param node: whom to ask; null: whoever leads as far as the client knows.
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
class AskEpochEnd(AsPython):
    """OffsetForLeaderEpoch, asked of the leader, for the epoch so many before its own."""

    epochs_ago: int = 1
    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class AskMetadata(AsPython):
    """Metadata, so many times, with a pause after each; null: of any node."""

    times: int = 1
    pause_ms: int = 0
    topic: str = "a"
    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class AskVersions(AsPython):
    """ApiVersions, and from then on each request in the newest version that this node and the client know."""

    node: Node | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ReadAt(AsPython):
    """One fetch.

    :param node: whom to ask; null: whoever leads as far as the client knows.
    :param offset: null: at the high watermark that the client heard last.
    :param epoch_ahead: what the client claims to know of the leader epoch, relative to what it knows; null: nothing.
    """

    offset: int | None = 0
    topic: str = "a"
    partition: int = 0
    node: Node | None = None
    epoch_ahead: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class SendOnce(AsPython):
    """Send one batch and wait for its answer, without any retry.

    :param node: whom to send it to; null: whoever leads as far as the client knows.
    :param copies: the same bytes, so many times, one after the other.
    :param idempotent: with a producer id of this client's own, and sequences.
    :param skips: sequences that are left out before it.
    :param corrupt: a bit of the records is wrong, so that the checksum does not match.
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
class SendNonsense(AsPython):
    """Send bytes that are no request, or one of a version that nobody has.

    :param api_key: of the header; the body is `size` bytes that say nothing.
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
class AddPartitions(AsPython):
    """Let a topic have so many partitions."""

    total: int
    topic: str = "a"


@dataclass(frozen=True, slots=True, repr=False)
class AlterTopic(AsPython):
    """Set a property of a topic; it stays.

    :param validate_only: or only ask if it could be set.
    """

    name: str
    value: str
    topic: str = "a"
    validate_only: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class MovePartition(AsPython):
    """Reassign a partition to these nodes, or, where they are null, give that up; nothing waits until that is over."""

    replicas: tuple[int, ...] | None
    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class ElectPreferred(AsPython):
    """Have the first replica of the assignment elected."""

    topic: str = "a"
    partition: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Describe(AsPython):
    """Have something described, by any node.

    :param subject: one of `chaos.simulation.clients.descriptions`.
    """

    subject: str = "cluster"
    topic: str = "a"


RawStep = (
    AskEnd
    | AskEpochEnd
    | AskMetadata
    | AskVersions
    | ReadAt
    | SendOnce
    | SendNonsense
    | DeleteRecords
    | CreateTopic
    | DeleteTopic
    | AddPartitions
    | AlterTopic
    | MovePartition
    | ElectPreferred
    | Describe
    | Rest
)


@dataclass(frozen=True, slots=True, repr=False)
class RawClient(AsPython):
    """Sends what its steps say, each request once, and learns of leaders and epochs as it goes.

    :param first_sequence: of its idempotent batches in each partition; behind 2³¹ - 1 comes 0.
    """

    steps: tuple[RawStep, ...] = ()
    timeout_ms: int = 2_000
    first_sequence: int = 0


SteppingClient = Producer | Consumer | RawClient
