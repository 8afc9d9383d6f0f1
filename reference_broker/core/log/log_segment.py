"""Segment of a log: `NNN.log` with `.index` and `.timeindex`, named by its base offset.

Follows: org.apache.kafka.storage.internals.log.LogSegment.

Rules of this file:
- As in Kafka, a batch is indexed when more than `index.interval.bytes` were written since the last indexed one, and
  the time index gets a last entry when the segment is closed.
- A batch is located by the index and then header by header, without reading records. The memory that a segment uses
  does not depend on its size.
- An index that is missing, truncated, or inconsistent with the `.log` is rebuilt when that is detected.
"""

from collections.abc import Callable, Iterator

from reference_broker.core.disk import Disk
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.index import (
    RELATIVE_OFFSET_MAX,
    OffsetIndex,
    OffsetPosition,
    TimeIndex,
    TimestampOffset,
)
from reference_broker.protocol.record_batch import NO_TIMESTAMP, BatchHeader, Bytes

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"


class LogSegment:
    """Consecutive batches. Only the last segment of a log is appended to.

    The constructor does not read the `.log` file. The caller passes the base offset of the next segment as
    `end_offset`; the end offset of the last segment is determined by `load_tail` or `recover`.
    """

    __slots__ = (
        "_bytes_since_indexed",
        "_disk",
        "_file",
        "_first_timestamp_ms",
        "_index_interval_bytes",
        "_is_largest_checked",
        "_largest",
        "_offset_index",
        "_time_index",
        "base_offset",
        "created_ms",
        "end_offset",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int, end_offset: int, now_ms: int
    ) -> None:
        stem = f"{directory}/{base_offset:020d}"
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.created_ms = now_ms
        self._disk = disk
        self._file = BatchFile(disk, stem + LOG_SUFFIX)
        self._index_interval_bytes = index_interval_bytes
        self._offset_index = OffsetIndex(disk, stem + INDEX_SUFFIX, base_offset)
        self._time_index = TimeIndex(disk, stem + TIME_INDEX_SUFFIX, base_offset)
        self._bytes_since_indexed = 0
        self._largest = self._time_index.last
        self._is_largest_checked = False
        self._first_timestamp_ms: int | None = None

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int, now_ms: int
    ) -> "LogSegment":
        """Create an empty segment."""
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            disk.append(f"{directory}/{base_offset:020d}{suffix}", b"")
        return cls(
            disk,
            directory,
            base_offset,
            index_interval_bytes=index_interval_bytes,
            end_offset=base_offset,
            now_ms=now_ms,
        )

    @property
    def offset_index(self) -> OffsetIndex:
        """The `.index`: positions of batches by offset."""
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The `.timeindex`: largest timestamps by offset."""
        return self._time_index

    # Opening

    def load_tail(self) -> None:
        """Determine the end offset by a scan from the last indexed batch, and remove an incomplete batch at the end."""
        if not self._confirms_position(self._offset_index.last):
            self._rebuild_indexes()
        last = self._offset_index.last
        end, latest, self.end_offset = last.position if last else 0, None, self.base_offset
        for position, header in self._file.headers(end):
            end, self.end_offset = position + header.size_bytes, header.last_offset + 1
            if latest is None or header.max_timestamp_ms > latest.max_timestamp_ms:
                latest = header
        self._file.truncate(end)
        if latest is not None:
            self._note_timestamp(latest)

    def recover(self, observe: Callable[[BatchHeader], None]) -> int:
        """Verify every batch, truncate the file after the last valid one, and rebuild the indexes.

        :param observe: called with the header of each valid batch.
        :returns: the number of truncated bytes.
        """
        self._clear_indexes()
        end, self.end_offset = 0, self.base_offset
        for position, header in self._file.valid_batches(self.base_offset, self.base_offset + RELATIVE_OFFSET_MAX):
            self._index(header, position)
            observe(header)
            end, self.end_offset = position + header.size_bytes, header.last_offset + 1
        cut_bytes = self.size_bytes - end
        self._file.truncate(end)
        self.close()
        return cut_bytes

    def sanity_check(self) -> None:
        """Rebuild both indexes if one is missing or malformed, as Kafka does.

        They are also rebuilt if the offset index is empty although the segment has a batch that must be indexed.
        """
        indexes = (self._offset_index, self._time_index)
        lost = not all(self._disk.exists(index.path) and index.is_whole for index in indexes)
        if lost or (not self._offset_index and self._has_indexable_batch()):
            self._rebuild_indexes()

    def _has_indexable_batch(self) -> bool:
        since_indexed = 0
        for _, header in self._file.headers():
            if since_indexed > self._index_interval_bytes:
                return True
            since_indexed += header.size_bytes
        return False

    def _rebuild_indexes(self) -> None:
        """Rebuild the indexes from the headers, without reading records.

        The indexes are flushed here, because a later flush of the log begins at the recovery point, which may be above
        this segment.
        """
        self._clear_indexes()
        for position, header in self._file.headers():
            self._index(header, position)
        if self._largest:
            self._time_index.maybe_append(self._largest)
        self._disk.flush(*self._offset_index.take_unflushed(), *self._time_index.take_unflushed())

    def _clear_indexes(self) -> None:
        self._offset_index.clear()
        self._time_index.clear()
        self._largest, self._is_largest_checked, self._bytes_since_indexed = None, True, 0

    def _confirms_position(self, entry: OffsetPosition | None) -> bool:
        """Whether the batch of an entry is at the entry's position."""
        if entry is None:
            return True
        found = self._file.header_at(entry.position)
        return found is not None and found.last_offset == entry.last_offset

    def _confirms_largest(self) -> bool:
        """Whether `_largest` agrees with the batches: its batch has that timestamp, and no later one has a larger."""
        headers = self.headers(self._largest.last_offset if self._largest else self.base_offset)
        if self._largest is None:
            return all(header.max_timestamp_ms == NO_TIMESTAMP for header in headers)
        first = next(headers, None)
        if first is None or (first.max_timestamp_ms, first.last_offset) != self._largest:
            return False
        return all(header.max_timestamp_ms <= first.max_timestamp_ms for header in headers)

    # Writing

    def append(self, header: BatchHeader, records: Bytes) -> None:
        """Append a batch with its final offset. `records` are the bytes after the header."""
        position = self._file.append(header, records)
        self._index(header, position)
        if not position:
            self._first_timestamp_ms = header.max_timestamp_ms
        self.end_offset = header.last_offset + 1

    def _index(self, header: BatchHeader, position: int) -> None:
        self._note_timestamp(header)
        if self._bytes_since_indexed > self._index_interval_bytes:
            self._offset_index.append(header.last_offset, position)
            if self._largest:
                self._time_index.maybe_append(self._largest)
            self._bytes_since_indexed = 0
        self._bytes_since_indexed += header.size_bytes

    def _note_timestamp(self, header: BatchHeader) -> None:
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self._largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)

    def is_full(self, header: BatchHeader, segment_bytes: int, index_bytes: int) -> bool:
        """Whether a batch does not fit, because of its size, its relative offset or a full index (`shouldRoll`)."""
        return (
            self.size_bytes > segment_bytes - header.size_bytes
            or self._offset_index.is_full(index_bytes)
            or self._time_index.is_full(index_bytes)
            or header.last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def time_waited_for_roll_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """Return the age of the segment for `segment.ms`.

        The age is the time from the max timestamp of the first batch to that of the batch to append. If the first batch
        has no timestamp, the age is the time since this object was created.

        :param timestamp_ms: max timestamp of the batch to append.
        """
        if self._first_timestamp_ms is None:
            first = self._file.header_at(0)
            self._first_timestamp_ms = first.max_timestamp_ms if first else None
        if self._first_timestamp_ms is not None and self._first_timestamp_ms >= 0:
            return timestamp_ms - self._first_timestamp_ms
        return now_ms - self.created_ms

    def close(self) -> None:
        """Append the last entry of the time index (`onBecomeInactiveSegment`)."""
        if self._largest:
            self._time_index.maybe_append(self._largest)

    def take_unflushed(self, *, with_indexes: bool) -> list[str]:
        """Return the paths of files that are not durable. The caller must flush them at once.

        :param with_indexes: false for the active segment, whose indexes can be rebuilt.
        """
        indexes = [*self._offset_index.take_unflushed(), *self._time_index.take_unflushed()] if with_indexes else []
        return [*self._file.take_unflushed(), *indexes]

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that contains `offset` and all later ones.

        The segment then ends at its last remaining batch. That may be before `offset`, if a power cut has removed
        batches.
        """
        position = self.position_of(offset)
        if position is not None:
            self._file.truncate(position)
        self._offset_index.truncate_to(offset)
        self._time_index.truncate_to(offset)
        self._largest, self._first_timestamp_ms = self._time_index.last, None
        self._is_largest_checked = True
        self._bytes_since_indexed = 0
        self.load_tail()

    def delete(self) -> None:
        """Remove the files."""
        for path in (self._file.path, self._offset_index.path, self._time_index.path):
            if self._disk.exists(path):
                self._disk.delete(path)

    # Reading

    @property
    def log_path(self) -> str:
        """Path of the `.log` file."""
        return self._file.path

    @property
    def size_bytes(self) -> int:
        """Size of the `.log` file."""
        return self._file.size_bytes

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp, -1 if no record has one. The first call compares the time index with the batches."""
        if not self._is_largest_checked:
            self._is_largest_checked = True
            if not self._confirms_largest():
                self._rebuild_indexes()
        return self._largest.timestamp_ms if self._largest else NO_TIMESTAMP

    def headers(self, from_offset: int) -> Iterator[BatchHeader]:
        """Yield the header of every batch that ends at `from_offset` or above."""
        position = self.position_of(from_offset)
        return (header for _, header in self._file.headers(self.size_bytes if position is None else position))

    def position_of(self, offset: int) -> int | None:
        """Return the position of the first batch that ends at `offset` or above; null if none (`translateOffset`)."""
        if offset >= self.end_offset:
            return None
        entry = self._offset_index.floor(offset)
        if entry is None:
            return self._file.position_of(offset, 0)
        header = self._file.header_at(entry.position)
        if header is None or header.last_offset != entry.last_offset:
            self._rebuild_indexes()
            return self._file.position_of(offset, 0)
        return self._file.position_of(offset, entry.position)

    def read(self, offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool) -> bytes | None:
        """Return at most `max_bytes` of whole batches below `end_offset`, from the one that contains `offset` on.

        Return null if no batch ends at `offset` or above.

        :param whole_first_batch: return the first batch even if it is larger than `max_bytes`.
        """
        start = self.position_of(offset)
        if start is None:
            return None
        end = self.size_bytes if end_offset >= self.end_offset else self.position_of(end_offset)
        if end is None:
            end = self.size_bytes
        if end - start > max_bytes:
            end = self._last_boundary(start, start + max_bytes)
            if end == start and whole_first_batch:
                first = self._file.header_at(start)
                end += first.size_bytes if first else 0
        return self._file.read(start, end)

    def _last_boundary(self, start: int, limit: int) -> int:
        """Return the last position from `start` to `limit` at which a batch begins or the last batch ends."""
        entry = self._offset_index.floor_of_position(limit)
        boundary = max(start, entry.position) if entry else start
        for position, header in self._file.headers(boundary):
            if position + header.size_bytes > limit:
                break
            boundary = position + header.size_bytes
        return boundary

    def batch_at_or_after(self, timestamp_ms: int, from_offset: int) -> tuple[BatchHeader, bytes] | None:
        """Return header and records of the first batch from `from_offset` on with this max timestamp or a later one."""
        entry = self._time_index.before(timestamp_ms)
        if entry is not None and not self._confirms_timestamp(entry):
            self._rebuild_indexes()
            entry = self._time_index.before(timestamp_ms)
        position = self.position_of(max(from_offset, entry.last_offset if entry else self.base_offset))
        if position is None:
            return None
        for batch_position, header in self._file.headers(position):
            if header.max_timestamp_ms >= timestamp_ms:
                return header, self._file.records(batch_position, header)
        return None

    def _confirms_timestamp(self, entry: TimestampOffset) -> bool:
        header = next(self.headers(entry.last_offset), None)
        return header is not None and (header.max_timestamp_ms, header.last_offset) == entry
