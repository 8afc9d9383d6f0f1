"""Sparse indexes of a segment, in Kafka's format: sorted entries of fixed size, found by binary search.

Follows: org.apache.kafka.storage.internals.log.OffsetIndex, org.apache.kafka.storage.internals.log.TimeIndex.

    file        fields and their sizes in bytes     meaning
    .index      relative offset 4 | position 4      the last offset of a batch, and the position of the batch
    .timeindex  timestamp 8 | relative offset 4     the largest timestamp so far, and the last offset of its batch

Rules of this file:
- An index is derived from its `.log`. A reader compares each entry that it uses with the batch of the entry, and
  rebuilds the index if they differ.
- Entries stay on disk. Only their number and the last entry are in memory. This is enough for lookups at the end of the
  log; other lookups take a dozen small reads.
- Kafka preallocates the index of an active segment and trims it on closing. Here the file contains only entries.
"""

import struct
from bisect import bisect_right
from typing import NamedTuple

from reference_broker.core.disk import Disk

RELATIVE_OFFSET_MAX = 2**31 - 1


class OffsetPosition(NamedTuple):
    """Last offset of a batch, and its position in the file."""

    last_offset: int
    position: int


class TimestampOffset(NamedTuple):
    """The largest timestamp so far, and the last offset of the first batch that has it."""

    timestamp_ms: int
    last_offset: int


class _Index:
    """Entries of a fixed size in a file."""

    _entry: struct.Struct

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.path = path
        self._disk = disk
        self._base_offset = base_offset
        size_bytes = disk.size(path) if disk.exists(path) else 0
        self.is_whole = size_bytes % self._entry.size == 0
        """Whether the size of the file is a multiple of the entry size."""
        self._count = size_bytes // self._entry.size
        self._last = self._raw(self._count - 1) if self._count else None
        self._is_durable = True

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Remove all entries; create the file if it is missing."""
        self._disk.append(self.path, b"")
        self._disk.truncate(self.path, 0)
        self.is_whole, self._count, self._last, self._is_durable = True, 0, None, False

    def take_unflushed(self) -> list[str]:
        """Return the path if a change of the file is not durable. The caller must flush the file at once."""
        was_durable, self._is_durable = self._is_durable, True
        return [] if was_durable else [self.path]

    def _raw(self, number: int) -> tuple[int, int]:
        size = self._entry.size
        first, second = self._entry.unpack(self._disk.read(self.path, number * size, size))
        return first, second

    def _floor(self, key: int, field: int) -> int:
        """Return the number of the last entry whose field is at most `key`; -1 if there is none."""
        if self._last is None or self._last[field] <= key:
            return self._count - 1
        return bisect_right(range(self._count), key, key=lambda number: self._raw(number)[field]) - 1

    def _append(self, first: int, second: int) -> None:
        self._disk.append(self.path, self._entry.pack(first, second))
        self._count += 1
        self._last, self._is_durable = (first, second), False

    def _keep(self, count: int) -> None:
        if count < self._count:
            self._disk.truncate(self.path, count * self._entry.size)
            self._count, self._is_durable = count, False
            self._last = self._raw(count - 1) if count else None


class OffsetIndex(_Index):
    """Positions of batches by offset, about one entry per `index.interval.bytes`."""

    _entry = struct.Struct(">ii")

    def append(self, last_offset: int, position: int) -> None:
        """Append an entry for a batch."""
        self._append(last_offset - self._base_offset, position)

    @property
    def last(self) -> OffsetPosition | None:
        """The last entry; null if there are no entries."""
        return self.entry(self._count - 1)

    def floor(self, offset: int) -> OffsetPosition | None:
        """Return the last entry at `offset` or below, from which a scan for `offset` begins (`lookup`)."""
        return self.entry(self._floor(offset - self._base_offset, field=0))

    def floor_of_position(self, position: int) -> OffsetPosition | None:
        """Return the last entry whose batch begins at `position` or below."""
        return self.entry(self._floor(position, field=1))

    def is_full(self, size_max_bytes: int) -> bool:
        """Whether another entry would exceed `segment.index.bytes`."""
        return self._count >= size_max_bytes // self._entry.size

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` or above."""
        self._keep(self._floor(offset - 1 - self._base_offset, field=0) + 1)

    def entry(self, number: int) -> OffsetPosition | None:
        """Return the nth entry; null for a negative number."""
        if number < 0:
            return None
        relative, position = self._last if number == self._count - 1 and self._last else self._raw(number)
        return OffsetPosition(relative + self._base_offset, position)


class TimeIndex(_Index):
    """The largest timestamp up to an offset, for lookups by time."""

    _entry = struct.Struct(">qi")

    def maybe_append(self, largest: TimestampOffset) -> None:
        """Append an entry, unless the last entry has the same timestamp or a larger one."""
        if self._last is None or largest.timestamp_ms > self._last[0]:
            self._append(largest.timestamp_ms, largest.last_offset - self._base_offset)

    @property
    def last(self) -> TimestampOffset | None:
        """The last entry, which has the largest timestamp; null if there are no entries."""
        return self.entry(self._count - 1)

    def before(self, timestamp_ms: int) -> TimestampOffset | None:
        """Return the last entry below a timestamp: no record up to its offset has that timestamp or a later one."""
        return self.entry(self._floor(timestamp_ms - 1, field=0))

    def is_full(self, size_max_bytes: int) -> bool:
        """Whether there is room for at most one more entry, which is reserved for the end of the segment."""
        return self._count >= size_max_bytes // self._entry.size - 1

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` or above."""
        self._keep(self._floor(offset - 1 - self._base_offset, field=1) + 1)

    def entry(self, number: int) -> TimestampOffset | None:
        """Return the nth entry; null for a negative number."""
        if number < 0:
            return None
        timestamp_ms, relative = self._last if number == self._count - 1 and self._last else self._raw(number)
        return TimestampOffset(timestamp_ms, relative + self._base_offset)
