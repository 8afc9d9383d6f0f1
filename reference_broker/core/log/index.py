"""The two sparse indexes beside a segment, in Kafka's format: sorted entries of fixed size, looked up by bisection.

    .index      relative offset 4 | position 4      the last offset of a batch, and where the batch begins
    .timeindex  timestamp 8 | relative offset 4     the largest timestamp so far, and the last offset of its batch

Rules of this file:
- An index is derived from its `.log`. One that is missing, cut short or out of order is made again, never trusted.
- It is held in memory as it stands on disk, so that memory is that of the file and an append is one small write.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator

from reference_broker.core.disk import Disk

RELATIVE_OFFSET_MAX = 2**31 - 1


class _Index:
    """Entries of a fixed size, in a file and in memory."""

    _entry: struct.Struct

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self._path = path
        self._base_offset = base_offset
        self._data = bytearray(disk.read(path, 0, disk.size(path)) if disk.exists(path) else b"")

    def __len__(self) -> int:
        return len(self._data) // self._entry.size

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        return len(self._data)

    def _at(self, number: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(self._data, number * self._entry.size)
        return first, second

    def _floor(self, key: int) -> int:
        """Number of the last entry whose first field is at most `key`; -1 where there is none."""
        return bisect_right(range(len(self)), key, key=lambda number: self._at(number)[0]) - 1

    def _entries(self) -> Iterator[tuple[int, int]]:
        return self._entry.iter_unpack(self._data)

    def _append(self, first: int, second: int) -> None:
        entry = self._entry.pack(first, second)
        self._disk.append(self._path, entry)
        self._data += entry

    def _keep(self, count: int) -> None:
        if count < len(self):
            del self._data[count * self._entry.size :]
            self._disk.truncate(self._path, len(self._data))

    def clear(self) -> None:
        """Begin again with an empty file."""
        self._data.clear()
        self._disk.replace(self._path, b"")

    def make_durable(self) -> None:
        """Flush the file."""
        if self._disk.exists(self._path):
            self._disk.flush(self._path)

    def is_sane(self) -> bool:
        """Whole entries, and both fields rise (a position or offset of an index that is no lie)."""
        if len(self._data) % self._entry.size:
            return False
        before = (-1, -1)
        for entry in self._entries():
            if entry[0] <= before[0] or entry[1] <= before[1]:
                return False
            before = entry
        return True


class OffsetIndex(_Index):
    """Where batches lie in the file, an entry about every `index.interval.bytes`."""

    _entry = struct.Struct(">ii")

    def append(self, last_offset: int, position: int) -> None:
        """Note a batch by its last offset."""
        self._append(last_offset - self._base_offset, position)

    def position_at_or_below(self, offset: int) -> int:
        """A position from which a scan finds the batch of `offset`."""
        number = self._floor(offset - self._base_offset)
        return self._at(number)[1] if number >= 0 else 0

    def boundary_at_or_below(self, position: int) -> int:
        """The highest indexed start of a batch that is not behind `position`."""
        number = bisect_right(range(len(self)), position, key=lambda number: self._at(number)[1]) - 1
        return self._at(number)[1] if number >= 0 else 0

    @property
    def last_position(self) -> int:
        """Start of the last indexed batch; 0 where there is none."""
        return self._at(len(self) - 1)[1] if len(self) else 0

    def truncate_to(self, offset: int) -> None:
        """Forget batches that end at `offset` or above."""
        self._keep(self._floor(offset - 1 - self._base_offset) + 1)


class TimeIndex(_Index):
    """The largest timestamp up to an offset, for lookups by time."""

    _entry = struct.Struct(">qi")

    def append_if_later(self, timestamp_ms: int, last_offset: int) -> None:
        """Note a largest timestamp; one that does not rise is not worth an entry."""
        if timestamp_ms > self.last[0] and last_offset > self.last[1]:
            self._append(timestamp_ms, last_offset - self._base_offset)

    @property
    def last(self) -> tuple[int, int]:
        """Largest timestamp noted and the last offset of its batch; -1 and the offset before the segment at first."""
        if not len(self):
            return -1, self._base_offset - 1
        timestamp_ms, relative_offset = self._at(len(self) - 1)
        return timestamp_ms, relative_offset + self._base_offset

    def offset_before(self, timestamp_ms: int) -> int:
        """An offset up to which every record is older than `timestamp_ms`, so that a scan may begin there."""
        number = self._floor(timestamp_ms - 1)
        return self._at(number)[1] + self._base_offset if number >= 0 else self._base_offset

    def truncate_to(self, offset: int) -> None:
        """Forget entries at `offset` or above."""
        relative = offset - self._base_offset
        self._keep(bisect_right(range(len(self)), relative - 1, key=lambda number: self._at(number)[1]))
