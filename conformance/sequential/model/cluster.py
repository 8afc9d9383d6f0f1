"""The state of the model: topics, their partitions' logs, producers, group offsets.

It is as small as the answers allow. A partition's log is a list of batches with the offsets that they were given; the
high watermark is the log's end. Nothing fails, so all replicas are in sync, and a leader changes only where a script
has it changed; where the replicas are is known only of topics that the script places.
"""

from dataclasses import dataclass, field
from typing import Final

from conformance.sequential.answer import ReadRecord
from conformance.sequential.steps import SEQUENCES

BATCHES_REMEMBERED: Final = 5
"""How many of a producer's batches a broker recognises when they come again (KIP-98: `max.in.flight` is at most 5)."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in the log, with its size in bytes on the wire."""

    records: tuple[ReadRecord, ...]
    size: int
    leader_epoch: int = 0
    codec: str = "none"

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
        return (self.recent[-1].last_sequence + 1) % SEQUENCES if self.recent else 0


@dataclass(slots=True)
class Partition:
    """One partition's log."""

    batches: list[StoredBatch] = field(default_factory=list)
    log_start_offset: int = 0
    producers: dict[int, ProducerState] = field(default_factory=dict)
    replicas: tuple[int, ...] | None = None
    """In their order; null where the cluster chose them."""
    leader: int | None = None
    """Null where the cluster chose it."""
    leader_epoch: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """(epoch, offset of its first record) of the leader's epochs, ascending in both (KIP-101)."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def readable(self) -> list[ReadRecord]:
        """The records at or above the log start."""
        return [record for batch in self.batches for record in batch.records if record.offset >= self.log_start_offset]

    def begin_epoch(self, leader: int | None) -> None:
        """A new leader, or the old one in a new epoch. An epoch without records is forgotten with the next."""
        self.leader = leader
        self.leader_epoch += 1
        if self.epoch_starts and self.epoch_starts[-1][1] >= self.log_end_offset:
            self.epoch_starts.pop()
        self.epoch_starts.append((self.leader_epoch, self.log_end_offset))

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at the offset was appended, or would be."""
        return max((epoch for epoch, start in self.epoch_starts if start <= offset), default=self.leader_epoch)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not newer, and where it ended; (-1, -1) for one that is still to come."""
        if epoch > self.leader_epoch:
            return -1, -1
        known = max((begun for begun, _ in self.epoch_starts if begun <= epoch), default=epoch)
        return known, next((start for begun, start in self.epoch_starts if begun > epoch), self.log_end_offset)


@dataclass(slots=True)
class Topic:
    """A topic with its properties. `id` counts the topics that the script created, one created again included."""

    id: int
    partitions: list[Partition]
    properties: dict[str, str]


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

    def partition(self, topic: str, index: int, topic_id: int | None = None) -> Partition | None:
        """The partition, or null where topic or partition do not exist, or the topic has another id than this."""
        found = self.topics.get(topic)
        if found is None or topic_id not in {None, found.id} or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]
