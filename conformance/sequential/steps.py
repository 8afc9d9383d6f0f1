"""Scripts: plain values that say, request by request, what is asked of a broker.

A `Script` is a tuple of steps. A step is one request in Kafka's terms; how it looks in the version that a target
speaks is `requests`' business, and how its answer is compared is `answers`'. Rules:

- A value says everything: the same script is sent to every target, prints as a program (`program`), and is what
  Hypothesis shrinks.
- A name that begins with `trial` stands for a fresh topic, or a fresh group, of that run of the script; any other name
  is sent as it stands.
- A producer is named by the order in which the script was handed its id: 0 is the first `InitProducerId`'s.
- `version` is the highest to use; null means the newest that both sides know. It is lowered to what a target offers.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from fixtures.clients.record_batch import Compression, Record

__all__ = [
    "API_VERSIONS_NEWEST",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "TOPIC",
    "ApiVersions",
    "Batch",
    "Compression",
    "CreateTopic",
    "DeleteRecords",
    "DeleteTopic",
    "Fetch",
    "Flaw",
    "InitProducerId",
    "ListOffsets",
    "Metadata",
    "MetadataById",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Pipelined",
    "Produce",
    "RawBytes",
    "Record",
    "Script",
    "Step",
]

TOPIC = "trial"
"""The usual topic of a script."""

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""The special timestamps of ListOffsets (KIP-79, KIP-734, KIP-405, KIP-1005)."""

API_VERSIONS_NEWEST = 99
"""An ApiVersions version that no broker has."""


@dataclass(frozen=True, slots=True)
class Step:
    """Base of all steps."""


class Flaw(StrEnum):
    """One thing that is wrong with a batch."""

    WRONG_CRC = "wrong crc"
    """The checksum is not that of the bytes."""
    MAGIC_1 = "magic 1"
    """The format byte says 1, which Produce v3 and later do not carry (KIP-98)."""
    TRUNCATED = "truncated"
    """The last byte is missing."""
    COUNT_TOO_HIGH = "count too high"
    """The header counts one record more than there are; the checksum covers the lie."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch to be produced. With a `producer` it carries that id, epoch and sequence."""

    records: tuple[Record, ...]
    compression: Compression = Compression.NONE
    producer: int | None = None
    epoch: int = 0
    sequence: int = 0
    flaw: Flaw | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record."""
        return self.sequence + len(self.records) - 1


# --- topics


@dataclass(frozen=True, slots=True)
class CreateTopic(Step):
    """CreateTopics of one topic. An assignment is (partition, (broker, …)); it excludes a partition count.

    Once a broker said NONE, the script waits until every broker knows the topic and each partition's leader serves.
    """

    topic: str = TOPIC
    partitions: int = 1
    configs: tuple[tuple[str, str], ...] = (("retention.ms", "-1"),)
    """Kept for ever by default: the timestamps of a script are fixed, and old."""
    replication_factor: int = 1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    validate_only: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopic(Step):
    """DeleteTopics of one topic by name. Once a broker said NONE, the script waits until all have forgotten it."""

    topic: str = TOPIC
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Metadata(Step):
    """Metadata without automatic creation, of the topics named; null asks for all, an empty tuple for none."""

    topics: tuple[str, ...] | None = (TOPIC,)
    version: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataById(Step):
    """Metadata by topic id (KIP-516). `topic_id` counts the ids that the script has seen; -1 is one nobody has."""

    topic_id: int = 0


# --- records


@dataclass(frozen=True, slots=True)
class Produce(Step):
    """Produce to one partition. Several batches in one partition, or none, are against the protocol."""

    batches: tuple[Batch, ...]
    topic: str = TOPIC
    partition: int = 0
    acks: int = -1
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Fetch(Step):
    """Fetch without a session (KIP-227) from one partition."""

    offset: int = 0
    topic: str = TOPIC
    partition: int = 0
    partition_max_bytes: int = 1 << 20
    max_bytes: int = 1 << 22
    max_wait_ms: int = 0
    min_bytes: int = 0
    leader_epoch: int = -1
    """What the client believes the leader's epoch to be (KIP-320); -1 says nothing."""
    read_committed: bool = False
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
    """OffsetForLeaderEpoch of one partition (KIP-101, KIP-320): where `epoch` ended."""

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
class InitProducerId(Step):
    """InitProducerId without a transactional id: the script's next producer."""

    version: int | None = None


# --- group offsets


@dataclass(frozen=True, slots=True)
class OffsetCommit(Step):
    """OffsetCommit of one partition, by default a simple one: no member, no generation."""

    offset: int
    group: str = TOPIC
    topic: str = TOPIC
    partition: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    generation: int = -1
    member: str = ""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetFetch(Step):
    """OffsetFetch of one partition."""

    group: str = TOPIC
    topic: str = TOPIC
    partition: int = 0
    version: int | None = None


# --- the connection


@dataclass(frozen=True, slots=True)
class ApiVersions(Step):
    """ApiVersions, with the client's name and version since v3 (KIP-511). May be of a version nobody has."""

    version: int = 3
    software_name: str = "kafkatrial"
    software_version: str = "1"


@dataclass(frozen=True, slots=True)
class RawBytes(Step):
    """Bytes on a connection of their own. The answer says whether that was closed, and whether the broker lives."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pipelined(Step):
    """Several requests to one partition's leader, all sent before any answer is read."""

    steps: tuple[Produce | Fetch | ListOffsets, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Script:
    """Steps in order, each sent when the one before was answered."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)
