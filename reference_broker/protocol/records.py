"""Encoder and decoder of the record batches of internal topics.

Follows: org.apache.kafka.common.record.internal.DefaultRecord.

The keys and values of other topics are not decoded (`record_batch`). A record has the form

    length | attributes 1 | timestamp delta | offset delta | key length | key | value length | value | headers count

where lengths, deltas and the headers count are zigzag varints. A length of -1 means null.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reference_broker.protocol.encoding import varint
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchError,
    BatchHeader,
    checksum,
    decompress,
    signed_varint,
)
from reference_broker.protocol.steps import finish

_NO_PRODUCER_EPOCH = -1
_NULL = varint(1)
_DECOMPRESSED_MAX_BYTES = 64 * 1024 * 1024
"""Limit for batches that a client compressed; the broker's own batches are not compressed."""
_NO_ATTRIBUTES, _NO_DELTA, _NO_HEADERS = b"\x00", b"\x00", b"\x00"


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Key and value of a record."""

    key: bytes | None
    value: bytes | None


def encode_batch(records: Sequence[KeyValue], timestamp_ms: int) -> bytes:
    """Encode an uncompressed batch of magic 2 with base offset 0, which the log replaces."""
    content = b"".join(_encode_record(record, offset) for offset, record in enumerate(records))
    header = BatchHeader(
        base_offset=0,
        length=HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES + len(content),
        leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=_NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=len(records),
    )
    return header._replace(crc=checksum(header.pack() + content)).pack() + content


def _encode_record(record: KeyValue, offset: int) -> bytes:
    content = b"".join(
        (_NO_ATTRIBUTES, _NO_DELTA, varint(2 * offset), *_sized(record.key), *_sized(record.value), _NO_HEADERS)
    )
    return varint(2 * len(content)) + content


def _sized(content: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if content is None else (varint(2 * len(content)), content)


def complete_batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch. The checksum is not verified.

    :raises BatchError: a batch is incomplete or has another magic.
    """
    position = 0
    while position < len(data):
        header = BatchHeader.parse(data, position)
        end = position + header.size_bytes
        if header.size_bytes < HEADER_SIZE_BYTES or end > len(data) or header.magic != MAGIC:
            raise BatchError(f"no complete batch at position {position}")
        yield position, header
        position = end


def decode_batches(data: bytes) -> Iterator[tuple[int, KeyValue]]:
    """Yield offset and content of each record of complete batches, except control batches.

    Records are not validated: an invalid one raises `BatchError` or `IndexError`, or has a shortened key or value.

    :raises BatchError: a batch is incomplete or cannot be decompressed.
    """
    for position, header in complete_batches(data):
        if not header.is_control:
            end = position + header.size_bytes
            records = decompress(header, data[position + HEADER_SIZE_BYTES : end], _DECOMPRESSED_MAX_BYTES)
            yield from _records(header, finish(records))


def next_offset(data: bytes) -> int:
    """Return the offset after the last of one or more complete batches. The batches may have no records.

    :raises BatchError: a batch is incomplete.
    """
    return max(header.last_offset for _, header in complete_batches(data)) + 1


def _records(header: BatchHeader, data: bytes | bytearray) -> Iterator[tuple[int, KeyValue]]:
    position = 0
    for _ in range(header.records_count):
        size, position = signed_varint(data, position)
        end = position + size
        _, position = signed_varint(data, position + 1)
        offset_delta, position = signed_varint(data, position)
        key, position = _read_sized(data, position)
        value, position = _read_sized(data, position)
        yield header.base_offset + offset_delta, KeyValue(key, value)
        position = end


def _read_sized(data: bytes | bytearray, position: int) -> tuple[bytes | None, int]:
    size, position = signed_varint(data, position)
    return (None, position) if size < 0 else (bytes(data[position : position + size]), position + size)
