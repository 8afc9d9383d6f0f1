"""Record batches, magic 2 (KIP-98), behind a view of their header: the records stay opaque bytes.

A batch is 61 bytes of header and then its records, which its codec may have compressed together:

    base offset 8 | length 4 | partition leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4 |
    base timestamp 8 | max timestamp 8 | producer id 8 | producer epoch 2 | base sequence 4 | records count 4

Rules of this file:
- The checksum (CRC-32C) covers everything from the attributes on. Base offset and leader epoch lie before it, so a
  broker assigns both without touching the rest; a broker that sets a timestamp must make the checksum again.
- Records are decoded only where the protocol demands it: a key on a compacted topic, a timestamp looked up, the count
  of a batch held against its records.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from crc32c import crc32c

HEADER_SIZE_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""Base offset and length, which the length does not count."""
MAGIC = 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_ATTRIBUTES_POSITION = 21
_CRC_POSITION = 17
_MAX_TIMESTAMP_POSITION = 35
_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


class Codec(IntEnum):
    """The compression of a batch's records, the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchError(ValueError):
    """These bytes are no batch, or a torn one."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of one batch. Offsets and timestamps are those written in it."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview, position: int = 0) -> Self:
        """The header at a position.

        :raises BatchError: fewer bytes are there than a header has.
        """
        try:
            return cls(*_HEADER.unpack_from(data, position))
        except struct.error:
            raise BatchError(f"{len(data) - position} bytes at position {position} are less than a header") from None

    @property
    def size_bytes(self) -> int:
        """Header and records."""
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap to 0 after 2^31-1."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        """A `Codec`, or a number that names none."""
        return self.attributes & _CODEC_MASK

    @property
    def is_control(self) -> bool:
        """A batch of markers, which consumers never see."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def has_log_append_time(self) -> bool:
        """The max timestamp is the broker's and holds for every record."""
        return bool(self.attributes & _LOG_APPEND_TIME)


def batch_size_bytes(data: bytes | memoryview, position: int = 0) -> int:
    """Size of the batch at a position, by its length field alone; the bytes may end before it."""
    if len(data) - position < LOG_OVERHEAD_BYTES:
        raise BatchError("fewer bytes than the start of a batch")
    size: int = _OFFSET_AND_LENGTH.unpack_from(data, position)[1] + LOG_OVERHEAD_BYTES
    if size < HEADER_SIZE_BYTES:
        raise BatchError(f"a batch of {size} bytes is smaller than its header")
    return size


def iterate_headers(data: bytes | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch; a torn one at the end is left out."""
    position = 0
    while len(data) - position >= HEADER_SIZE_BYTES:
        header = BatchHeader.parse(data, position)
        if header.size_bytes < HEADER_SIZE_BYTES or position + header.size_bytes > len(data):
            return
        yield position, header
        position += header.size_bytes


def checksum(batch: bytes | bytearray | memoryview) -> int:
    """The CRC-32C that the header of these bytes should carry."""
    return crc32c(memoryview(batch)[_ATTRIBUTES_POSITION:])


def place(batch: bytes | bytearray, base_offset: int, leader_epoch: int) -> bytearray:
    """The batch at its place in the log. The checksum covers neither field."""
    placed = bytearray(batch)
    struct.pack_into(">q", placed, 0, base_offset)
    struct.pack_into(">i", placed, 12, leader_epoch)
    return placed


def stamp_log_append_time(batch: bytearray, now_ms: int) -> None:
    """Give every record the broker's time (KIP-32), in place."""
    attributes = struct.unpack_from(">h", batch, _ATTRIBUTES_POSITION)[0] | _LOG_APPEND_TIME
    struct.pack_into(">h", batch, _ATTRIBUTES_POSITION, attributes)
    struct.pack_into(">q", batch, _MAX_TIMESTAMP_POSITION, now_ms)
    struct.pack_into(">I", batch, _CRC_POSITION, checksum(batch))


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """What the broker may want of one record."""

    offset_delta: int
    timestamp_delta_ms: int
    has_key: bool


def iterate_records(batch: bytes | memoryview) -> Iterator[RecordSummary]:
    """The records of one batch, decompressed where need be.

    :raises BatchError: the records do not fit their batch.
    """
    header = BatchHeader.parse(batch)
    try:
        data = _decompress(header.codec, bytes(memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]))
        position = 0
        for _ in range(header.records_count):
            length, start = _varint(data, position)
            timestamp_delta_ms, position = _varint(data, start + 1)
            offset_delta, position = _varint(data, position)
            key_length, position = _varint(data, position)
            position = start + length
            if length < 0 or position > len(data):
                raise BatchError("a record ends after its batch")
            yield RecordSummary(offset_delta, timestamp_delta_ms, key_length >= 0)
    except (IndexError, zlib.error, OSError) as error:
        raise BatchError(f"records that cannot be read: {error}") from error
    if position != len(data):
        raise BatchError(f"{len(data) - position} bytes stand behind the last record")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise BatchError("a varint longer than ten bytes")


def _decompress(codec: int, data: bytes) -> bytes:
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return zlib.decompress(data, wbits=31)
        case Codec.SNAPPY | Codec.LZ4 | Codec.ZSTD:
            return _decompress_with_arrow(Codec(codec), data)
    raise BatchError(f"no codec has the number {codec}")


_SNAPPY_JAVA_MAGIC = b"\x82SNAPPY\x00"


def _decompress_with_arrow(codec: Codec, data: bytes) -> bytes:
    """Arrow's codecs cost 50 MB to import, so that only a batch which must be opened pays for them."""
    import io

    import pyarrow as pa

    if codec is Codec.SNAPPY:
        return b"".join(_snappy_block(block) for block in _snappy_blocks(data))
    with pa.CompressedInputStream(io.BytesIO(data), codec.name.lower()) as stream:
        return bytes(stream.read())


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Java producers frame snappy in blocks with a length each; others send one bare block."""
    if not data.startswith(_SNAPPY_JAVA_MAGIC):
        yield data
        return
    position = 16
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        yield data[position + 4 : position + 4 + size]
        position += 4 + size


def _snappy_block(block: bytes) -> bytes:
    """A snappy block begins with its decompressed size as a plain varint."""
    import pyarrow as pa

    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))
