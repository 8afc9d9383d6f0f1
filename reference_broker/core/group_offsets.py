"""Committed offsets of the groups in one partition of `__consumer_offsets`, on the partition's leader.

Follows: org.apache.kafka.coordinator.group.OffsetMetadataManager.

Rules of this file:
- The state results only from the partition's records, so the next leader has the same state. It is loaded from the log
  in pieces when the leadership begins, and dropped when the leadership ends.
- An offset becomes visible when its record is committed, because a new leader might not have the record before that.
  Offsets in records above the high watermark are kept separately. Each append, and each read of a group's offsets,
  applies those that are now below the high watermark. Kafka uses timelines (`TimelineHashMap`).
- A group exists if it has an offset, committed or not. Members are not supported yet.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.group_records import OffsetCommitKey, OffsetCommitValue, decode_offset_commit
from reference_broker.protocol.records import decode_batches, next_offset

Commit = tuple[OffsetCommitKey, OffsetCommitValue | None]
"""Group and partition, and their committed offset; null is a tombstone, which deletes the offset."""

_LOAD_SIZE_BYTES = 64 * 1024


class CoordinatorLoadError(Exception):
    """A record that cannot be decoded, so that the partition cannot be loaded."""


class GroupOffsets:
    """Committed offsets by group, topic and partition."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._committed: defaultdict[str, dict[tuple[str, int], OffsetCommitValue]] = defaultdict(dict)
        self._uncommitted: deque[tuple[int, Commit]] = deque()
        self._loaded_to = partition.log_start_offset
        self._load_to = partition.log.log_end_offset

    # Loading

    @property
    def is_loaded(self) -> bool:
        """Whether the log has been loaded up to the end that it had when the leadership began."""
        return self._loaded_to >= self._load_to

    def load_more(self) -> None:
        """Read the next piece of the log, and add its commits.

        :raises CoordinatorLoadError: a record cannot be decoded.
        """
        batches = self.partition.log.read(self._loaded_to, _LOAD_SIZE_BYTES, self._load_to)
        for end_offset, commit in _commits(batches, self._loaded_to):
            self.appended(end_offset, [commit])
        self._loaded_to = next_offset(batches) if batches else self._load_to

    # Offsets

    def exists(self, group: str) -> bool:
        """Whether the group has a committed offset, or a record that is not committed yet."""
        return bool(self.committed(group)) or any(commit[0].group == group for _, commit in self._uncommitted)

    @property
    def groups(self) -> Collection[str]:
        """The groups with a committed offset. Records that were committed since the last read are not considered."""
        return self._committed.keys()

    def committed(self, group: str) -> Mapping[tuple[str, int], OffsetCommitValue]:
        """Return the committed offsets of a group, by topic and partition."""
        self._take_over_committed()
        return self._committed.get(group, {})

    def keys_outside(self, topics: Iterable[str]) -> Iterator[OffsetCommitKey]:
        """Yield the keys of all committed offsets whose topic is not in `topics`."""
        self._take_over_committed()
        for group, offsets in self._committed.items():
            for topic, index in offsets:
                if topic not in topics:
                    yield OffsetCommitKey(group=group, topic=topic, partition=index)

    def appended(self, end_offset: int, commits: Iterable[Commit]) -> None:
        """Add appended commits whose records end at `end_offset`, and apply those that are committed."""
        self._uncommitted.extend((end_offset, commit) for commit in commits)
        self._take_over_committed()

    def _take_over_committed(self) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= self.partition.high_watermark:
            self._apply(*self._uncommitted.popleft()[1])

    def _apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            self._committed[key.group][key.topic, key.partition] = value
        elif key.group in self._committed:
            self._committed[key.group].pop((key.topic, key.partition), None)
            if not self._committed[key.group]:
                del self._committed[key.group]


def _commits(batches: bytes, from_offset: int) -> Iterator[tuple[int, Commit]]:
    """Yield end offset and commit of each record from `from_offset` on. Records of other types are ignored.

    :raises CoordinatorLoadError: a record cannot be decoded.
    """
    end_offset = from_offset
    try:
        for offset, record in decode_batches(batches):
            if offset >= from_offset:
                if record.key is None:
                    raise ValueError("a record without a key")
                commit = decode_offset_commit(record.key, record.value)
                end_offset = offset + 1
                if commit is not None:
                    yield end_offset, commit
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise CoordinatorLoadError(f"the record at offset {end_offset} cannot be decoded: {detail}") from error
