"""Steps on records of one partition: produce, fetch, look up and delete."""

from dataclasses import dataclass
from enum import StrEnum

from conformance.sequential.steps.base import TOPIC, Step
from fixtures.clients.record_batch import Compression, Record

SEQUENCES = 2**31
"""Number of sequence numbers, from 0 to 2147483647."""
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""The special timestamps of ListOffsets (KIP-79, KIP-734, KIP-405, KIP-1005)."""
MAX_WAIT_MS = 50
"""Default of the time after which a broker returns a fetch with the records that it has read."""


class Flaw(StrEnum):
    """A defect of a batch."""

    WRONG_CRC = "wrong crc"
    """The checksum is not that of the bytes."""
    MAGIC_1 = "magic 1"
    """The magic byte is 1, which Produce v3 and later reject (KIP-98)."""
    TRUNCATED = "truncated"
    """The last byte is missing."""
    COUNT_TOO_HIGH = "count too high"
    """The header counts one record too many; the checksum is correct."""
    MAGIC_3 = "magic 3"
    """The magic byte is 3, which does not exist."""
    CONTROL = "control"
    """A control batch, which only brokers write."""
    OFFSETS_TOO_MANY = "offsets too many"
    """The header spans one offset too many; the checksum is correct."""
    COUNT_AND_OFFSETS = "count and offsets too high"
    """The record count and the last offset are both too high; the checksum is correct."""
    NO_SEQUENCE = "no sequence"
    """The batch has a producer id and no sequence."""
    DOUBLED = "doubled"
    """The same batch twice."""
    TRANSACTIONAL = "transactional"
    """The batch belongs to a transaction, and the request has no transactional id."""
    GARBLED = "garbled"
    """The records, compressed or not, are zero bytes; the checksum is correct."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch to be produced. If `producer` is set, the batch has this producer's id, `epoch` and `sequence`.

    If `max_timestamp_ms` is set, the header has it instead of the newest timestamp of the records.
    """

    records: tuple[Record, ...]
    compression: Compression = Compression.NONE
    producer: int | None = None
    epoch: int = 0
    sequence: int = 0
    flaw: Flaw | None = None
    max_timestamp_ms: int | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; 0 follows the highest one (KIP-98)."""
        return (self.sequence + len(self.records) - 1) % SEQUENCES


@dataclass(frozen=True, slots=True)
class Produce(Step):
    """Produce to one partition. The protocol permits exactly one batch in a partition.

    In versions with topic ids (v13), `topic_id` replaces the topic's own id. It is a number as in `MetadataById`.
    """

    batches: tuple[Batch, ...]
    topic: str = TOPIC
    partition: int = 0
    acks: int = -1
    version: int | None = None
    topic_id: int | None = None


@dataclass(frozen=True, slots=True)
class Fetch(Step):
    """Fetch without a session (KIP-227) from one partition. `topic_id` is as in `Produce`.

    A fetch with `min_bytes` 0 does not wait for records. By default `max_wait_ms` is not 0 nevertheless, because a
    broker that reads slowly may return what it has read once this time is over.
    """

    offset: int = 0
    topic: str = TOPIC
    partition: int = 0
    partition_max_bytes: int = 1 << 20
    max_bytes: int = 1 << 22
    max_wait_ms: int = MAX_WAIT_MS
    min_bytes: int = 0
    leader_epoch: int = -1
    """The current leader epoch of the client (KIP-320); -1 for none."""
    read_committed: bool = False
    version: int | None = None
    topic_id: int | None = None


@dataclass(frozen=True, slots=True)
class SessionFetch(Step):
    """Fetch in the script's fetch session, sent to the leader of the topic's partition 0 (KIP-227).

    The response has the partitions that it returns, each with its error, the offsets of its records and its high
    watermark.

    :ivar partitions: partitions that are added to the session, or whose fetch offset changes, with their fetch offsets.
    :ivar forgotten: partitions that are removed from the session.
    :ivar epoch: session epoch: None for the next one, 0 for a new session, -1 to end the session.
    """

    partitions: tuple[tuple[int, int], ...] = ()
    forgotten: tuple[int, ...] = ()
    epoch: int | None = None
    topic: str = TOPIC
    version: int | None = None


@dataclass(frozen=True, slots=True)
class ListOffsets(Step):
    """ListOffsets of one partition by timestamp, or by one of the special ones."""

    timestamp: int = LATEST
    topic: str = TOPIC
    partition: int = 0
    leader_epoch: int = -1
    read_committed: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpoch(Step):
    """OffsetForLeaderEpoch of one partition (KIP-101, KIP-320): the end offset of `epoch`."""

    epoch: int = 0
    topic: str = TOPIC
    partition: int = 0
    leader_epoch: int = -1
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteRecords(Step):
    """DeleteRecords of one partition before an offset; -1 is the high watermark (KIP-107)."""

    offset: int = -1
    topic: str = TOPIC
    partition: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeProducers(Step):
    """DescribeProducers of one partition (KIP-664)."""

    topic: str = TOPIC
    partition: int = 0


@dataclass(frozen=True, slots=True)
class InitProducerId(Step):
    """InitProducerId: the script's next producer, or, with a transactional id, the next epoch of its producer."""

    version: int | None = None
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class ListTransactions(Step):
    """ListTransactions of the coordinator of a transactional id (KIP-664). The response is about this id only.

    :ivar states: states of the transactions to list; empty for all.
    :ivar producers: producers whose transactions are listed; empty for all.
    """

    transactional_id: str = TOPIC
    states: tuple[str, ...] = ()
    producers: tuple[int, ...] = ()
    version: int | None = None
