"""State of the model: topics, their partitions' logs, producers, groups and their offsets.

It contains only what determines responses. A partition's log is a list of batches with their offsets; the log end is
the high watermark. A script uses no replica of a broker that is down, so all others are in sync, and a leader changes
only if the script requests it. The replicas are known only for topics that the script assigns.
"""

from dataclasses import dataclass, field
from typing import Final

from conformance.sequential.response import ReadRecord
from conformance.sequential.steps import SEQUENCES

BATCHES_REMEMBERED: Final = 5
"""Number of a producer's batches that a broker recognises when they are sent again (KIP-98: at most 5 in flight)."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in the log, with its size in bytes on the wire."""

    records: tuple[ReadRecord, ...]
    size: int
    leader_epoch: int = 0
    codec: str = "none"
    last: int | None = None
    """Offset of the last record before compaction; None if compaction has not rewritten the batch."""
    producer: tuple[int, int, int] = (-1, -1, -1)
    """Producer, epoch and base sequence."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self.records[0].offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record, whether or not it is still there."""
        return self.records[-1].offset if self.last is None else self.last


@dataclass(frozen=True, slots=True)
class AppendedSequence:
    """Sequence numbers and base offset of one batch of a producer."""

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
    """Replicas in their order; None if the cluster selected them."""
    leader: int | None = None
    """Leader of the partition; None if the cluster selected it."""
    target: tuple[int, ...] | None = None
    """Replicas that the ongoing reassignment requests; None if no reassignment is ongoing."""
    leader_epoch: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """(epoch, offset of its first record) of the leader's epochs, ascending in both (KIP-101)."""

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def readable(self) -> list[ReadRecord]:
        """The records at or above the log start."""
        return [record for batch in self.batches for record in batch.records if record.offset >= self.log_start_offset]

    def begin_epoch(self, leader: int | None) -> None:
        """Begin a new epoch with a leader. An epoch without records is removed when the next one begins."""
        self.leader = leader
        self.leader_epoch += 1
        if self.epoch_starts and self.epoch_starts[-1][1] >= self.log_end_offset:
            self.epoch_starts.pop()
        self.epoch_starts.append((self.leader_epoch, self.log_end_offset))

    def epoch_at(self, offset: int) -> int:
        """Return the epoch in which the record at the offset was appended, or would be."""
        return max((epoch for epoch, start in self.epoch_starts if start <= offset), default=self.leader_epoch)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the newest epoch up to the given one, and its end offset; (-1, -1) for a future epoch."""
        if epoch > self.leader_epoch:
            return -1, -1
        known = max((begun for begun, _ in self.epoch_starts if begun <= epoch), default=epoch)
        return known, next((start for begun, start in self.epoch_starts if begun > epoch), self.log_end_offset)


@dataclass(slots=True)
class Topic:
    """A topic with its properties. `id` is the number of topics that the script has created before this one."""

    id: int
    partitions: list[Partition]
    properties: dict[str, str]
    replication_factor: int | None = None
    """The number of replicas that was requested; None if it is the broker's default."""


@dataclass(slots=True)
class FetchSession:
    """A fetch session (KIP-227)."""

    epoch: int
    """Epoch of the next request."""
    offsets: dict[int, int] = field(default_factory=dict)
    """Fetch offset by partition."""
    returned: dict[int, int] = field(default_factory=dict)
    """By partition, the high watermark of the last response that had the partition."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's committed offset in one partition."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(slots=True)
class Group:
    """A group of the classic protocol with at most one member, which is then its leader."""

    pending: set[int] = field(default_factory=set)
    """Members that have received their ids and have not joined with them."""
    member: int | None = None
    generation: int = 0
    protocols: tuple[tuple[str, bytes], ...] = ()
    """Name and metadata of each protocol of the member."""
    instance: str | None = None
    """Group instance id of the member, if it is a static member (KIP-345)."""
    protocol_type: str = ""
    """Type of the protocols of the first member; empty before it joins."""
    assignment: bytes | None = None
    """Assignment of the member; None from the beginning of a generation until the leader sends it."""


@dataclass(slots=True)
class ModelCluster:
    """All state that a script can change."""

    topics: dict[str, Topic] = field(default_factory=dict)
    down: set[int] = field(default_factory=set)
    """Places of the brokers that are down."""
    topic_ids: int = 0
    """Number of assigned topic ids."""
    producers: int = 0
    """Number of assigned producer ids."""
    transactional_ids: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Producer and its epoch by transactional id."""
    quotas: dict[tuple[str, str | None], dict[str, int]] = field(default_factory=dict)
    """Quotas by client id, user and name; the user is None for the quotas of every user."""
    credentials: dict[str, dict[int, int]] = field(default_factory=dict)
    """Iterations by SCRAM mechanism, by user."""
    fetch_session: FetchSession | None = None
    members: int = 0
    """Number of assigned member ids."""
    groups: dict[str, Group] = field(default_factory=dict)
    """Groups in which members have joined, by name."""
    committed: dict[tuple[str, int, int], CommittedOffset] = field(default_factory=dict)
    """Committed offsets by group, topic id and partition."""

    def partition(self, topic: str, index: int, topic_id: int | None = None) -> Partition | None:
        """Return the partition; None if topic or partition do not exist, or the topic has another id."""
        found = self.topics.get(topic)
        if found is None or topic_id not in {None, found.id} or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]
