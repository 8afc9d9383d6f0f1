"""The state of the model: topics, their partitions' logs, producers, group offsets.

It is as small as the answers allow. A partition's log is a list of batches with the offsets that they were given; the
leader epoch is 0, since a script's topics are new and nothing fails; the high watermark is the log's end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from conformance.sequential.answers import ReadRecord

BATCHES_REMEMBERED: Final = 5
"""How many of a producer's batches a broker recognises when they come again (KIP-98: `max.in.flight` is at most 5)."""

LEADER_EPOCH: Final = 0


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in the log, with its size in bytes on the wire."""

    records: tuple[ReadRecord, ...]
    size: int

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self.records[0].offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.records[-1].offset


@dataclass(frozen=True, slots=True)
class AppendedSequence:
    """What a broker remembers of one batch of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class ProducerState:
    """A producer in one partition: its epoch and its last batches in that epoch, newest last."""

    epoch: int
    recent: list[AppendedSequence] = field(default_factory=list)

    @property
    def next_sequence(self) -> int:
        """The only sequence number that a new batch may begin with."""
        return self.recent[-1].last_sequence + 1 if self.recent else 0


@dataclass(slots=True)
class Partition:
    """One partition's log."""

    batches: list[StoredBatch] = field(default_factory=list)
    log_start_offset: int = 0
    producers: dict[int, ProducerState] = field(default_factory=dict)

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def readable(self) -> list[ReadRecord]:
        """The records at or above the log start."""
        return [record for batch in self.batches for record in batch.records if record.offset >= self.log_start_offset]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its properties. `id` counts the topics that the script created, one created again included."""

    id: int
    partitions: tuple[Partition, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's position in one partition."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(slots=True)
class Cluster:
    """Everything that a script can have changed."""

    topics: dict[str, Topic] = field(default_factory=dict)
    topic_ids: int = 0
    """How many topic ids were given out."""
    producers: int = 0
    """How many producer ids were handed out."""
    committed: dict[tuple[str, int, int], CommittedOffset] = field(default_factory=dict)
    """By group, topic id and partition."""

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition, or null where topic or partition do not exist."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]
