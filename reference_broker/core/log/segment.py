"""One segment of a log: `NNN.log` with its `.index` and `.timeindex`, named by the offset at which it begins.

Rules of this file:
- Batches lie end to end in `.log`; the indexes say no more than the file does and are made from it again if in doubt.
- As Kafka does, a batch is indexed when more than `index.interval.bytes` were written since the last indexed one.
- Where a batch lies is found by the index and then header by header, never by a list of all batches: a segment costs
  the memory of its indexes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from reference_broker.core.disk import Disk
from reference_broker.core.log.index import RELATIVE_OFFSET_MAX, OffsetIndex, TimeIndex
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    checksum,
    iterate_records,
)

_SCAN_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class TimestampAndOffset:
    """A record's timestamp, its offset, and the leader epoch of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class Segment:
    """A run of batches. Only the last segment of a log is appended to."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int) -> None:
        stem = f"{directory}/{base_offset:020d}"
        self.base_offset = base_offset
        self.log_path = f"{stem}.log"
        self._index_paths = (f"{stem}.index", f"{stem}.timeindex")
        self._disk = disk
        self._index_interval_bytes = index_interval_bytes
        self._offset_index = OffsetIndex(disk, self._index_paths[0], base_offset)
        self._time_index = TimeIndex(disk, self._index_paths[1], base_offset)
        self._bytes_since_indexed = 0
        self.size_bytes = disk.size(self.log_path) if disk.exists(self.log_path) else 0
        self.end_offset = base_offset
        self.max_timestamp_ms, self._max_timestamp_offset = self._time_index.last
        self.first_timestamp_ms: int | None = None
        if not disk.exists(self.log_path):
            for path in (self.log_path, *self._index_paths):
                disk.append(path, b"")

    # Opening

    def load(self) -> None:
        """Trust the file; read headers from the last indexed batch on. Damaged indexes are made again."""
        missing = any(not self._disk.exists(path) for path in self._index_paths)
        if missing or not self._indexes_fit():
            self.recover()
            return
        for _, header in self._headers_from(self._offset_index.last_position):
            self._take_in(header)
            self._bytes_since_indexed += header.size_bytes
        self._note_first_timestamp()

    def _indexes_fit(self) -> bool:
        sane = self._offset_index.is_sane() and self._time_index.is_sane()
        if not sane or self._offset_index.last_position >= max(self.size_bytes, 1):
            return False
        return (
            bool(len(self._offset_index)) or self.size_bytes <= 2 * self._index_interval_bytes or self._is_one_batch()
        )

    def _is_one_batch(self) -> bool:
        first = next(self._headers_from(0), None)
        return first is None or first[1].size_bytes * 2 >= self.size_bytes

    def recover(self) -> int:
        """Hold every batch against its checksum, cut the file behind the last whole one and make the indexes again.

        :returns: how many bytes were cut off.
        """
        self._offset_index.clear()
        self._time_index.clear()
        self.end_offset, self._bytes_since_indexed = self.base_offset, 0
        self.max_timestamp_ms, self._max_timestamp_offset = self._time_index.last
        valid_bytes = 0
        for position, header in self._valid_batches():
            self._index(header, position)
            self._take_in(header)
            valid_bytes = position + header.size_bytes
        cut_bytes = self.size_bytes - valid_bytes
        if cut_bytes:
            self._disk.truncate(self.log_path, valid_bytes)
            self.size_bytes = valid_bytes
        self._note_first_timestamp()
        return cut_bytes

    def _valid_batches(self) -> Iterator[tuple[int, BatchHeader]]:
        position, next_offset = 0, self.base_offset
        while self.size_bytes - position >= HEADER_SIZE_BYTES:
            header = BatchHeader.parse(self._disk.read(self.log_path, position, HEADER_SIZE_BYTES))
            fits = HEADER_SIZE_BYTES <= header.size_bytes <= self.size_bytes - position
            if not fits or header.magic != MAGIC or header.base_offset < next_offset or header.last_offset_delta < 0:
                return
            if header.crc != checksum(self._disk.read(self.log_path, position, header.size_bytes)):
                return
            yield position, header
            position += header.size_bytes
            next_offset = header.last_offset + 1

    def _note_first_timestamp(self) -> None:
        first = next(self._headers_from(0), None)
        self.first_timestamp_ms = first[1].max_timestamp_ms if first else None

    # Writing

    def append(self, batch: bytes | bytearray, header: BatchHeader) -> None:
        """Write a batch that has its place; `header` is the placed batch's own."""
        self._disk.append(self.log_path, batch)
        self._index(header, self.size_bytes)
        self._take_in(header)
        self.size_bytes += header.size_bytes
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = header.max_timestamp_ms

    def _index(self, header: BatchHeader, position: int) -> None:
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms, self._max_timestamp_offset = header.max_timestamp_ms, header.last_offset
        if self._bytes_since_indexed > self._index_interval_bytes:
            self._offset_index.append(header.last_offset, position)
            self._time_index.append_if_later(self.max_timestamp_ms, self._max_timestamp_offset)
            self._bytes_since_indexed = 0
        self._bytes_since_indexed += header.size_bytes

    def _take_in(self, header: BatchHeader) -> None:
        self.end_offset = header.last_offset + 1
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms, self._max_timestamp_offset = header.max_timestamp_ms, header.last_offset

    def has_room(self, header: BatchHeader, last_offset: int, segment_bytes: int, segment_index_bytes: int) -> bool:
        """Whether a batch still belongs here by size; an empty segment takes any."""
        if not self.size_bytes:
            return True
        index_full = max(self._offset_index.size_bytes + 8, self._time_index.size_bytes + 12) > segment_index_bytes
        too_far = last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        return self.size_bytes + header.size_bytes <= segment_bytes and not index_full and not too_far

    def seal(self) -> None:
        """No more will be appended: the time index says the largest timestamp, and all is made durable."""
        self._time_index.append_if_later(self.max_timestamp_ms, self._max_timestamp_offset)
        self.flush()
        self._offset_index.make_durable()
        self._time_index.make_durable()

    def flush(self) -> None:
        """Make the batches durable."""
        self._disk.flush(self.log_path)

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""
        position = self.position_of(offset)
        if position is None:
            return
        self._disk.truncate(self.log_path, position)
        self._offset_index.truncate_to(offset)
        self._time_index.truncate_to(offset)
        self.size_bytes, self.end_offset = position, self.base_offset
        self.max_timestamp_ms, self._max_timestamp_offset = self._time_index.last
        self._bytes_since_indexed = 0
        self.load()

    def delete(self) -> None:
        """Remove the files."""
        for path in (self.log_path, *self._index_paths):
            if self._disk.exists(path):
                self._disk.delete(path)

    # Reading

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch."""
        return self._headers_from(0)

    def _headers_from(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Headers one after the other, read in chunks; the body of a large batch is never read."""
        while position < self.size_bytes:
            chunk = self._disk.read(self.log_path, position, _SCAN_BYTES)
            start = position
            while position - start + HEADER_SIZE_BYTES <= len(chunk):
                header = BatchHeader.parse(chunk, position - start)
                if header.size_bytes < HEADER_SIZE_BYTES or position + header.size_bytes > self.size_bytes:
                    return
                yield position, header
                position += header.size_bytes
            if position == start:
                return

    def position_of(self, offset: int) -> int | None:
        """Where the first batch lies that ends at `offset` or above; null where none does."""
        if offset >= self.end_offset:
            return None
        for position, header in self._headers_from(self._offset_index.position_at_or_below(offset)):
            if header.last_offset >= offset:
                return position
        return None

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that holds `offset`, below `end_offset`, at most `max_bytes` but at least one."""
        start = self.position_of(offset)
        limit = self.size_bytes if end_offset >= self.end_offset else self.position_of(end_offset)
        if start is None or limit is None or start >= limit:
            return b""
        if limit - start > max_bytes:
            limit = self._boundary(start, start + max_bytes)
        return self._disk.read(self.log_path, start, limit - start)

    def _boundary(self, start: int, limit: int) -> int:
        """The end of the last batch from `start` that ends at `limit` or below, or of the first batch."""
        scan_from = max(start, self._offset_index.boundary_at_or_below(limit))
        end = scan_from
        for position, header in self._headers_from(scan_from):
            if position + header.size_bytes > limit and position > start:
                break
            end = position + header.size_bytes
            if end >= limit:
                break
        return end

    def first_at_or_after(self, timestamp_ms: int, from_offset: int) -> TimestampAndOffset | None:
        """The first record from `from_offset` on whose timestamp is `timestamp_ms` or later (KIP-79)."""
        start = max(self._time_index.offset_before(timestamp_ms), from_offset)
        position = self.position_of(start)
        if position is None:
            return None
        for batch_position, header in self._headers_from(position):
            if header.max_timestamp_ms >= timestamp_ms:
                found = self._first_record(batch_position, header, timestamp_ms, from_offset)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp (KIP-734)."""
        if self.max_timestamp_ms == NO_TIMESTAMP:
            return None
        return self.first_at_or_after(self.max_timestamp_ms, self.base_offset)

    def _first_record(
        self, position: int, header: BatchHeader, timestamp_ms: int, from_offset: int
    ) -> TimestampAndOffset | None:
        batch = self._disk.read(self.log_path, position, header.size_bytes)
        for record in iterate_records(batch):
            offset = header.base_offset + record.offset_delta
            stamped = header.base_timestamp_ms + record.timestamp_delta_ms
            time_ms = header.max_timestamp_ms if header.has_log_append_time else stamped
            if time_ms >= timestamp_ms and offset >= from_offset:
                return TimestampAndOffset(time_ms, offset, header.leader_epoch)
        return None
