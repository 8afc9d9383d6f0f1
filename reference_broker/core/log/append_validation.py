"""Validation of a batch before it is appended, with the checks, order and errors of Kafka.

Follows: org.apache.kafka.storage.internals.log.LogValidator (KIP-467).

1. The bytes are one whole batch of magic 2 (Produce from version 3 on).             INVALID_RECORD, CORRUPT_MESSAGE
2. Its base offset is 0.                                                             INVALID_RECORD
3. It is not larger than `max.message.bytes`.                                        MESSAGE_TOO_LARGE
4. Its checksum is right.                                                            CORRUPT_MESSAGE
5. Its counts agree, it is no control batch, an idempotent producer has a sequence.  INVALID_RECORD
6. Its codec exists (Kafka itself fails over one that does not).                     UNKNOWN_SERVER_ERROR
   It holds as many records as it says.                                              INVALID_RECORD
   Decompressed, where that is needed, it is at most 32 times `max.message.bytes`,
   and where that is more than 32 MiB, at most 32 MiB or `max.message.bytes`.        MESSAGE_TOO_LARGE
7. Every record has a key if the topic is compacted.                                 INVALID_RECORD, per record
8. Under CreateTime every timestamp lies within the topic's bounds (KIP-937); under
   LogAppendTime the producer has not claimed to be the broker.                      INVALID_TIMESTAMP, per record
9. It fits a segment.                                                                RECORD_LIST_TOO_LARGE
10. Its topic's codec packs it (`compression.type`), and rules 3 and 9 hold again.   MESSAGE_TOO_LARGE, …

The sequence of an idempotent producer comes after these (`producers`). Records are decoded for rule 7, and for rule 8
where the header's two timestamps leave a doubt; rule 6 walks over their lengths, unless they are compressed.

All of it depends on the batch and the topic's configuration alone, not on the log, and comes in pieces (`Steps`): a
small batch may decompress to much, and a large one holds many records. Kafka bounds neither.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from reference_broker.core.log.config import NEVER, LogConfig
from reference_broker.core.log.errors import AppendError, RecordError
from reference_broker.protocol.recompression import recompressed
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    Bytes,
    Codec,
    CompressionError,
    DecompressedSizeError,
    RecordSummary,
    TimestampType,
    checksum,
    count_records,
    decompress,
    iterate_records,
)
from reference_broker.protocol.steps import RECORDS_PER_STEP, Steps

_LEGACY_RECORD_SIZE_MIN_BYTES = 14
_SIZE_UP_TO_MAGIC_BYTES = 17
_MAGIC_POSITION = 16
_CODECS = frozenset(Codec)


_DECOMPRESSED_FACTOR = 32
_DECOMPRESSED_MAX_BYTES = 32 * 1024 * 1024
"""Above this a factor costs more memory than a node may take; `max.message.bytes` itself is always possible."""
_RECORD_ERRORS_MAX = 1_000


def decompressed_max_bytes(config: LogConfig) -> int:
    """How large the records of one batch may be without compression."""
    factor_bytes = min(_DECOMPRESSED_FACTOR * config.max_message_bytes, _DECOMPRESSED_MAX_BYTES)
    return max(factor_bytes, config.max_message_bytes)


@dataclass(frozen=True, slots=True)
class ValidatedBatch:
    """A batch that a log may take, packed as its topic prescribes."""

    header: BatchHeader
    data: Bytes


def validate(batch: Bytes, config: LogConfig, now_ms: int) -> Steps[ValidatedBatch]:
    """Validate the one batch that these bytes are, and pack it as the topic prescribes. Kafka's `LogValidator`.

    :raises AppendError: the first rule that it breaks.
    """
    header = _the_one_batch(batch)
    if header.base_offset != 0:
        raise AppendError("INVALID_RECORD", f"the base offset is {header.base_offset} where a client sends 0")
    _check_message_size(header, config)
    if header.crc != checksum(memoryview(batch)[: header.size_bytes]):
        raise AppendError("CORRUPT_MESSAGE", f"the checksum {header.crc:#010x} is not that of the batch")
    _check_header(header)
    codec = header.codec if config.compression_type is None else config.compression_type
    is_read = config.compacts or _has_doubtful_timestamp(header, config, now_ms)
    data: bytes | bytearray = b""
    if is_read or codec != header.codec:
        max_bytes = config.max_message_bytes if codec == Codec.NONE else decompressed_max_bytes(config)
        data = yield from _decompressed(header, batch, max_bytes)
    if is_read:
        yield from _check_records(header, data, config, now_ms)
    elif header.codec == Codec.NONE:
        yield from _check_count(header, batch)
    _check_segment_size(header, config)
    if codec == header.codec:
        return ValidatedBatch(header, batch)
    packed = yield from recompressed(header, data, Codec(codec))
    changed = BatchHeader.parse(packed)
    _check_message_size(changed, config)
    _check_segment_size(changed, config)
    return ValidatedBatch(changed, packed)


def _decompressed(header: BatchHeader, batch: Bytes, max_bytes: int) -> Steps[bytes | bytearray]:
    records = memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]
    try:
        return (yield from decompress(header, records, max_bytes))
    except DecompressedSizeError as error:
        raise AppendError("MESSAGE_TOO_LARGE", str(error)) from None
    except CompressionError as error:
        raise AppendError("UNKNOWN_SERVER_ERROR", str(error)) from None


def _check_message_size(header: BatchHeader, config: LogConfig) -> None:
    if header.size_bytes > config.max_message_bytes:
        raise AppendError(
            "MESSAGE_TOO_LARGE",
            f"a batch of {header.size_bytes} bytes where max.message.bytes is {config.max_message_bytes}",
        )


def _check_segment_size(header: BatchHeader, config: LogConfig) -> None:
    if header.size_bytes > config.segment_bytes:
        raise AppendError(
            "RECORD_LIST_TOO_LARGE",
            f"a batch of {header.size_bytes} bytes where segment.bytes is {config.segment_bytes}",
        )


def _the_one_batch(batch: Bytes) -> BatchHeader:
    size_bytes = _claimed_size_bytes(batch)
    if size_bytes is None or size_bytes > len(batch):
        raise AppendError("INVALID_RECORD", "here is no whole batch where a produce request carries one per partition")
    if batch[_MAGIC_POSITION] != MAGIC:
        raise AppendError("INVALID_RECORD", f"batches of magic {batch[_MAGIC_POSITION]} ended with Produce version 2")
    if size_bytes < HEADER_SIZE_BYTES:
        raise AppendError("CORRUPT_MESSAGE", f"a batch of {size_bytes} bytes is smaller than its header")
    behind = memoryview(batch)[size_bytes:]
    behind_bytes = _claimed_size_bytes(behind)
    if behind_bytes is not None and behind_bytes <= len(behind):
        raise AppendError(
            "INVALID_RECORD", "here is more than the one batch that a produce request carries per partition"
        )
    return BatchHeader.parse(batch)


def _claimed_size_bytes(batch: Bytes) -> int | None:
    """The size that the first batch claims; null where too few bytes are left to say, which Kafka passes over."""
    if len(batch) < LOG_OVERHEAD_BYTES:
        return None
    length = int.from_bytes(batch[8:LOG_OVERHEAD_BYTES], "big", signed=True)
    if length < _LEGACY_RECORD_SIZE_MIN_BYTES:
        raise AppendError("CORRUPT_MESSAGE", f"a record of {length} bytes is smaller than any")
    if len(batch) < _SIZE_UP_TO_MAGIC_BYTES:
        return None
    if batch[_MAGIC_POSITION] > MAGIC:
        raise AppendError("CORRUPT_MESSAGE", f"no batch has magic {batch[_MAGIC_POSITION]}")
    return length + LOG_OVERHEAD_BYTES


def _check_header(header: BatchHeader) -> None:
    broken = None
    if header.last_offset_delta < 0 or header.records_count != header.last_offset_delta + 1:
        broken = f"{header.records_count} records where the offsets tell of {header.last_offset_delta + 1}"
    elif header.is_control:
        broken = "clients do not write control batches"
    elif header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        broken = f"sequence {header.base_sequence} of producer {header.producer_id}"
    if broken:
        raise AppendError("INVALID_RECORD", broken)
    if header.codec not in _CODECS:
        raise AppendError("UNKNOWN_SERVER_ERROR", f"no codec has the number {header.codec}")


class _Fault(Enum):
    """What may be wrong with a record: Kafka's error, and its text."""

    NO_KEY = ("INVALID_RECORD", "Compacted topic cannot accept message without key")
    OUT_OF_RANGE = ("INVALID_TIMESTAMP", "Timestamp of message is out of range")
    APPEND_TIME = ("INVALID_TIMESTAMP", "Producer should not set timestamp type to LogAppendTime")


def _check_count(header: BatchHeader, batch: Bytes) -> Steps[None]:
    try:
        count = yield from count_records(batch, header.size_bytes)
    except BatchError as broken:
        raise AppendError("INVALID_RECORD", str(broken)) from None
    if count != header.records_count:
        raise AppendError("INVALID_RECORD", f"the batch does not hold the {header.records_count} records it says")


def _check_records(header: BatchHeader, data: bytes | bytearray, config: LogConfig, now_ms: int) -> Steps[None]:
    records = enumerate(iterate_records(header, data))
    faults: list[tuple[int, _Fault]] = []
    try:
        while piece := tuple(islice(records, RECORDS_PER_STEP)):
            faults += islice(_faults(header, piece, config, now_ms), _RECORD_ERRORS_MAX - len(faults))
            if len(piece) == RECORDS_PER_STEP:
                yield
    except BatchError as broken:
        raise AppendError("INVALID_RECORD", str(broken)) from None
    if faults:
        errors = {fault.value[0] for _, fault in faults}
        error = "INVALID_TIMESTAMP" if "INVALID_TIMESTAMP" in errors else "INVALID_RECORD"
        record_errors = tuple(RecordError(index, fault.value[1]) for index, fault in faults)
        raise AppendError(error, "One or more records have been rejected", record_errors)


def _has_doubtful_timestamp(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Both of the header's timestamps within the bounds settle it, unless records between them may be too old."""
    if config.uses_log_append_time or header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.timestamp_type is TimestampType.LOG_APPEND_TIME
    if config.message_timestamp_before_max_ms < NEVER:
        return True
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    return header.base_timestamp_ms > latest_ms or header.max_timestamp_ms > latest_ms


def _faults(
    header: BatchHeader, records: Iterable[tuple[int, RecordSummary]], config: LogConfig, now_ms: int
) -> Iterator[tuple[int, _Fault]]:
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    for index, record in records:
        if config.compacts and not record.has_key:
            yield index, _Fault.NO_KEY
        elif not config.uses_log_append_time and record.timestamp_ms != NO_TIMESTAMP:
            if not earliest_ms <= record.timestamp_ms <= latest_ms:
                yield index, _Fault.OUT_OF_RANGE
        elif header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            yield index, _Fault.APPEND_TIME
