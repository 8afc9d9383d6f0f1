"""A `.log` file: a sequence of batches.

Follows: org.apache.kafka.common.record.internal.FileRecords.

Rules of this file:
- A file is read from header to header. Headers are read in chunks, without the body of a large batch.
- Iteration ends at the first bytes that are not a whole batch of magic 2. `valid_batches`, which recovery uses, also
  verifies the checksum and the offsets of every batch.
"""

import struct
from collections.abc import Iterator

from reference_broker.core.disk import Disk
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    Bytes,
    checksum,
)

_CHUNK_BYTES = 8 * 1024
_EXTENT = struct.Struct(">qi4xb6xi")
"""Base offset, length, magic and last offset delta of a header: the fields needed to skip a batch."""


class BatchFile:
    """The batches of one segment."""

    __slots__ = ("_disk", "_is_durable", "path", "size_bytes")

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self.size_bytes = disk.size(path)
        self._disk = disk
        self._is_durable = False

    def append(self, header: BatchHeader, records: Bytes) -> int:
        """Append a batch, and return its position. `records` are the bytes after the header."""
        position = self.size_bytes
        self._disk.append(self.path, header.pack(), records)
        self.size_bytes += header.size_bytes
        self._is_durable = False
        return position

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to a size."""
        if size_bytes < self.size_bytes:
            self._disk.truncate(self.path, size_bytes)
            self.size_bytes = size_bytes
            self._is_durable = False

    def take_unflushed(self) -> list[str]:
        """Return the path if a change of the file is not durable. The caller must flush the file at once."""
        was_durable, self._is_durable = self._is_durable, True
        return [] if was_durable else [self.path]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another."""
        return self._disk.read(self.path, start, end - start) if end > start else b""

    def records(self, position: int, header: BatchHeader) -> bytes:
        """Return the bytes after the header of the batch at a position."""
        return self.read(position + HEADER_SIZE_BYTES, position + header.size_bytes)

    def header_at(self, position: int) -> BatchHeader | None:
        """Return the header of the whole batch at a position; null if there is none."""
        return self._header(self.read(position, position + HEADER_SIZE_BYTES), 0, position) if position >= 0 else None

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of each batch."""
        while 0 <= position < self.size_bytes:
            start, chunk = position, self._disk.read(self.path, position, _CHUNK_BYTES)
            while position - start + HEADER_SIZE_BYTES <= len(chunk):
                header = self._header(chunk, position - start, position)
                if header is None:
                    return
                yield position, header
                position += header.size_bytes
            if position == start:
                return

    def position_of(self, offset: int, position: int) -> int | None:
        """Return the position of the first batch from `position` on that ends at `offset` or above; null if none."""
        while 0 <= position < self.size_bytes:
            start, chunk = position, self._disk.read(self.path, position, _CHUNK_BYTES)
            while position - start + HEADER_SIZE_BYTES <= len(chunk):
                base_offset, length, magic, last_offset_delta = _EXTENT.unpack_from(chunk, position - start)
                size_bytes = length + LOG_OVERHEAD_BYTES
                if magic != MAGIC or not HEADER_SIZE_BYTES <= size_bytes <= self.size_bytes - position:
                    return None
                if base_offset + last_offset_delta >= offset:
                    return position
                position += size_bytes
            if position == start:
                return None
        return None

    def valid_batches(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of each batch, up to the first that is incomplete, corrupt or out of order.

        :param first_offset: the lowest valid base offset of the first batch.
        :param last_offset: the highest valid offset of a record.
        """
        position = 0
        while (header := self.header_at(position)) is not None:
            if not first_offset <= header.base_offset <= header.last_offset <= last_offset:
                return
            if header.crc != checksum(self.read(position, position + header.size_bytes)):
                return
            yield position, header
            position += header.size_bytes
            first_offset = header.last_offset + 1

    def _header(self, data: bytes, start: int, position: int) -> BatchHeader | None:
        if len(data) - start < HEADER_SIZE_BYTES:
            return None
        header = BatchHeader.parse(data, start)
        is_batch = header.magic == MAGIC and HEADER_SIZE_BYTES <= header.size_bytes <= self.size_bytes - position
        return header if is_batch else None
