"""Record batches of magic 2: header, checksum, decompression, and iteration over records.

Follows: org.apache.kafka.common.record.internal.DefaultRecordBatch (KIP-98).

A batch is a header of 61 bytes, then the records, which may be compressed together:

    base offset 8 | length 4 | partition leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4 |
    base timestamp 8 | max timestamp 8 | producer id 8 | producer epoch 2 | base sequence 4 | records count 4

Rules of this file:
- The checksum (CRC-32C) covers the bytes from the attributes on. Base offset and leader epoch precede the attributes:
  a broker assigns them without a new checksum. A broker that sets a timestamp must compute the checksum again.
- An append reads only the lengths and the timestamps of a client's records. Records are decoded only to check keys, to
  report records with an invalid timestamp, and to look up an offset by timestamp.
"""

import struct
import zlib
from collections.abc import Collection, Iterator
from enum import IntEnum
from typing import NamedTuple, Self

from crc32c import crc32c

from reference_broker.protocol.steps import BYTES_PER_STEP, Steps

Bytes = bytes | bytearray | memoryview

HEADER_SIZE_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""Size of the fields base offset and length; the length of a batch does not include them."""
MAGIC = 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_ATTRIBUTES_POSITION = 21
_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


class Codec(IntEnum):
    """Compression codec of a batch: the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Timestamp type of a batch, bit 3 of the attributes: the producer's or the broker's time (KIP-32)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchError(ValueError):
    """Bytes that are not a complete, valid batch."""


class CompressionError(BatchError):
    """Records that cannot be decompressed."""


class DecompressedSizeError(CompressionError):
    """Records whose decompressed size exceeds the limit."""


class BatchHeader(NamedTuple):
    """Header of a batch: the fields in the order in which they are stored."""

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
    def parse(cls, data: Bytes, position: int = 0) -> Self:
        """Decode the header at a position.

        :raises BatchError: the bytes end inside the header.
        """
        try:
            return cls._make(_HEADER.unpack_from(data, position))
        except struct.error:
            raise BatchError(f"the bytes end inside the header at position {position}") from None

    def pack(self) -> bytes:
        """Encode the header in 61 bytes."""
        return _HEADER.pack(*self)

    @property
    def size_bytes(self) -> int:
        """Size of header and records in bytes."""
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
        """A `Codec`, or an unknown number."""
        return self.attributes & _CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether the batch has control records, which consumers do not return."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def timestamp_type(self) -> TimestampType:
        """Timestamp type. With LogAppendTime every record has the max timestamp."""
        return TimestampType(bool(self.attributes & _LOG_APPEND_TIME))


def checksum(batch: Bytes) -> int:
    """Return the CRC-32C of a batch. In a valid batch, it equals the header's `crc`."""
    return crc32c(memoryview(batch)[_ATTRIBUTES_POSITION:])


def with_timestamp(header: BatchHeader, records: Bytes, timestamp_type: TimestampType, max_ms: int) -> BatchHeader:
    """Return the header with another timestamp type and max timestamp, and the new checksum (KIP-32).

    :param records: the bytes after the header.
    """
    attributes = header.attributes & ~_LOG_APPEND_TIME | timestamp_type * _LOG_APPEND_TIME
    changed = header._replace(attributes=attributes, max_timestamp_ms=max_ms)
    return changed._replace(crc=crc32c(records, crc32c(changed.pack()[_ATTRIBUTES_POSITION:])))


def with_codec(header: BatchHeader, codec: Codec) -> BatchHeader:
    """Return the header with another codec; length and checksum are not updated."""
    return header._replace(attributes=header.attributes & ~_CODEC_MASK | codec)


class RecordSummary(NamedTuple):
    """The properties of a record that the broker uses."""

    offset_delta: int
    timestamp_ms: int
    has_key: bool


def iterate_records(header: BatchHeader, data: bytes | bytearray) -> Iterator[RecordSummary]:
    """Yield the records of one batch.

    :param data: the decompressed records.
    :raises BatchError: the records do not match the header.
    """
    try:
        yield from _summaries(header, data)
    except IndexError:
        raise BatchError("a record ends after its batch") from None


def _summaries(header: BatchHeader, data: bytes | bytearray) -> Iterator[RecordSummary]:
    position = 0
    append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    for _ in range(header.records_count):
        length, start = signed_varint(data, position)
        timestamp_delta_ms, position = signed_varint(data, start + 1)
        offset_delta, position = signed_varint(data, position)
        key_length, position = signed_varint(data, position)
        position = start + length
        if length < 0 or position > len(data):
            raise BatchError("a record ends after its batch")
        timestamp_ms = header.max_timestamp_ms if append_time else header.base_timestamp_ms + timestamp_delta_ms
        yield RecordSummary(offset_delta, timestamp_ms, key_length >= 0)
    if position != len(data):
        raise BatchError(f"{len(data) - position} bytes follow the last record")


class RecordTotals(NamedTuple):
    """Number of records and range of their timestamps; `NO_TIMESTAMP` counts as a timestamp, as in Kafka."""

    records_count: int
    oldest_ms: int
    newest_ms: int


def total_records(header: BatchHeader, data: bytes | bytearray) -> Steps[RecordTotals]:
    """Count the records of one batch, and return the range of their timestamps.

    Every append runs this loop. For speed, it reads nothing else, and decodes lengths of one or two bytes inline.

    :param data: the decompressed records.
    :raises BatchError: a length is invalid, or the last record does not end with the data.
    """
    position, count, step_end, end = 0, 0, 0, len(data)
    deltas_ms: set[int] = set()
    try:
        while position < end:
            if step_end:
                yield
            step_end = min(position + BYTES_PER_STEP, end)
            while position < step_end:
                length = data[position]
                position += 1
                if length >= 0x80:
                    high = data[position]
                    if high < 0x80:
                        length += (high << 7) - 0x80
                        position += 1
                    else:
                        length, position = _unsigned_varint(data, position - 1)
                if length & 1:
                    raise BatchError("a record has a negative length")
                delta_ms = data[position + 1]
                if delta_ms >= 0x80:
                    delta_ms = _unsigned_varint(data, position + 1)[0]
                deltas_ms.add(delta_ms)
                position += length >> 1
                count += 1
    except IndexError:
        position = -1
    if position != end:
        raise BatchError("a record ends after its batch")
    return RecordTotals(count, *_timestamps(header, deltas_ms))


def _timestamps(header: BatchHeader, deltas_ms: Collection[int]) -> tuple[int, int]:
    """Return the oldest and the newest timestamp of records with these deltas, which are zigzag numbers."""
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME or not deltas_ms:
        return header.max_timestamp_ms, header.max_timestamp_ms
    signed_ms = [(delta_ms >> 1) ^ -(delta_ms & 1) for delta_ms in deltas_ms]
    newest_ms = header.base_timestamp_ms + max(signed_ms)
    return header.base_timestamp_ms + min(signed_ms), max(newest_ms, NO_TIMESTAMP)


def signed_varint(data: Bytes, position: int) -> tuple[int, int]:
    """Decode a zigzag varint; return its value and end position."""
    value, position = _unsigned_varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def _unsigned_varint(data: Bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise BatchError("a varint longer than ten bytes")


def decompress(header: BatchHeader, records: Bytes, max_bytes: int) -> Steps[bytes | bytearray]:
    """Decompress the records of one batch.

    :param records: the bytes after the header.
    :param max_bytes: limit of the decompressed size, because 33 kB can decompress to gigabytes.
    :raises DecompressedSizeError: the decompressed records exceed the limit.
    :raises CompressionError: the records cannot be decompressed.
    """
    data = bytes(records)
    if header.codec == Codec.NONE:
        return data
    yield
    whole = bytearray()
    try:
        for part in _parts(header.codec, data):
            if len(whole) + len(part) > max_bytes:
                raise DecompressedSizeError(f"records decompress to more than {max_bytes} bytes")
            whole += part
            yield
    except CompressionError:
        raise
    except (ValueError, OSError, IndexError, struct.error, zlib.error) as error:
        raise CompressionError(f"records that cannot be decompressed: {error}") from error
    return whole


def _parts(codec: int, data: bytes) -> Iterator[bytes]:
    """Return the decompressed data in pieces."""
    match codec:
        case Codec.GZIP:
            return _gzip_parts(data)
        case Codec.SNAPPY:
            return map(_snappy_block, _snappy_blocks(data))
        case Codec.LZ4 | Codec.ZSTD:
            return _arrow_parts(Codec(codec), data)
    raise BatchError(f"the codec {codec} is unknown")


_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_CHUNK_BYTES = 1 << 16
"""Maximum input of one call of zlib. It is small, because zlib copies the rest of the input at the end of a member."""


def _gzip_parts(data: bytes) -> Iterator[bytes]:
    """Decompress all members of a stream. As in Java's `GZIPInputStream`, other bytes after a member are ignored."""
    position = 0
    while True:
        decompressor = zlib.decompressobj(wbits=31)
        while not decompressor.eof:
            chunk = decompressor.unconsumed_tail
            if not chunk:
                chunk = data[position : position + _GZIP_CHUNK_BYTES]
                position += len(chunk)
            part = decompressor.decompress(chunk, BYTES_PER_STEP)
            if not part and not chunk and not decompressor.eof:
                raise CompressionError("records that cannot be decompressed: the gzip stream ends too early")
            yield part
        position -= len(decompressor.unused_data)
        if not data.startswith(_GZIP_MAGIC, position):
            return


_SNAPPY_RATIO_MAX = 32
"""Upper limit of the compression ratio: the densest element of snappy takes three bytes and copies 64."""
SNAPPY_JAVA_MAGIC = b"\x82SNAPPY\x00"


def _arrow_parts(codec: Codec, data: bytes) -> Iterator[bytes]:
    """Decompress with Arrow, which is imported only for a batch that needs it, because the import takes 50 MB."""
    import io

    import pyarrow as pa

    with pa.CompressedInputStream(io.BytesIO(data), codec.name.lower()) as stream:
        while part := stream.read(BYTES_PER_STEP):
            yield part


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the snappy blocks: Java producers write several with their lengths, other producers a single one."""
    if not data.startswith(SNAPPY_JAVA_MAGIC):
        yield data
        return
    position = 16
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        yield data[position + 4 : position + 4 + size]
        position += 4 + size


def _snappy_block(block: bytes) -> bytes:
    """Decompress a snappy block, which starts with its decompressed size as an unsigned varint."""
    import pyarrow as pa

    size, _ = _unsigned_varint(block, 0)
    if size > _SNAPPY_RATIO_MAX * len(block):
        raise BatchError(f"a snappy block of {len(block)} bytes claims a decompressed size of {size} bytes")
    return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))
