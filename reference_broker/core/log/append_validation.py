"""Validation of a batch before it is appended, with the checks, order and errors of Kafka.

Follows: org.apache.kafka.storage.internals.log.LogValidator (KIP-467).

1. The bytes are one whole batch of magic 2 (since Produce version 3).               INVALID_RECORD, CORRUPT_MESSAGE
2. Its base offset is 0.                                                             INVALID_RECORD
3. It is not larger than `max.message.bytes`.                                        MESSAGE_TOO_LARGE
4. Its checksum is correct.                                                          CORRUPT_MESSAGE
5. Its record count fits its last offset delta, and it is not a control batch. If it
   has a producer id, it has a base sequence.                                        INVALID_RECORD
6. Its codec exists (an unknown codec is an internal error in Kafka too).            UNKNOWN_SERVER_ERROR
   Its records can be decompressed.                                                  UNKNOWN_SERVER_ERROR
   Their size is at most `decompressed_max_bytes`; Kafka has no such limit.          MESSAGE_TOO_LARGE
   Their number is the record count of the header.                                   INVALID_RECORD
7. Every record has a key if the topic is compacted.                                 INVALID_RECORD, per record
8. With CreateTime, every timestamp is within the topic's bounds (KIP-937). With
   LogAppendTime, the producer has not set that timestamp type itself.               INVALID_TIMESTAMP, per record
9. The batch fits into a segment.                                                    RECORD_LIST_TOO_LARGE
10. After recompression for the topic (`compression.type`), it passes rules 3 and 9. as rules 3 and 9

The max timestamp of the header is then replaced by the newest timestamp of the records. The sequence of an idempotent
producer is checked afterwards (`producer_state_manager`).

Rule 6 reads the length and the timestamp of each record. All records are decoded for rules 7 and 8 only if a timestamp
may violate rule 8, or if the topic is compacted.

Validation depends only on the batch, the topic's configuration and the time, not on the log. It runs in steps
(`Steps`), because decompression and the check of many records may take long.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import AppendError, RecordError
from reference_broker.protocol.recompression import recompress
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
    RecordTotals,
    TimestampType,
    checksum,
    decompress,
    iterate_records,
    total_records,
    with_timestamp,
)
from reference_broker.protocol.steps import RECORDS_PER_STEP, Steps

_LEGACY_RECORD_SIZE_MIN_BYTES = 14
_SIZE_UP_TO_MAGIC_BYTES = 17
_MAGIC_POSITION = 16
_CODECS = frozenset(Codec)


_DECOMPRESSED_FACTOR = 32
_DECOMPRESSED_MAX_BYTES = 32 * 1024 * 1024
"""Limit of the memory of one decompression, unless `max.message.bytes` is larger."""
_RECORD_ERRORS_MAX = 1_000
"""Maximum number of invalid records that an error reports."""


def decompressed_max_bytes(config: LogConfig) -> int:
    """Return the maximum size of the decompressed records of one batch.

    It is 32 times `max.message.bytes`, but at most 32 MiB, or `max.message.bytes` if that is larger.
    """
    factor_bytes = min(_DECOMPRESSED_FACTOR * config.max_message_bytes, _DECOMPRESSED_MAX_BYTES)
    return max(factor_bytes, config.max_message_bytes)


@dataclass(frozen=True, slots=True)
class ValidatedBatch:
    """A valid batch, compressed with its topic's codec."""

    header: BatchHeader
    data: Bytes


def validate(batch: Bytes, config: LogConfig, now_ms: int) -> Steps[ValidatedBatch]:
    """Validate a batch, and recompress it if the topic has another codec (`validateMessagesAndAssignOffsets`).

    :raises AppendError: for the first rule that the batch violates.
    """
    header = _only_batch(batch)
    if header.base_offset != 0:
        raise AppendError("INVALID_RECORD", f"the base offset is {header.base_offset} instead of 0")
    _check_message_size(header, config)
    if header.crc != checksum(memoryview(batch)[: header.size_bytes]):
        raise AppendError("CORRUPT_MESSAGE", f"the checksum {header.crc:#010x} is not that of the batch")
    _check_header(header)
    data = yield from _decompressed(header, batch, decompressed_max_bytes(config))
    totals = yield from _totals(header, data)
    if config.compacts or _has_invalid_timestamp(header, totals, config, now_ms):
        yield from _check_records(header, data, config, now_ms)
    _check_segment_size(header, config)
    if header.max_timestamp_ms != totals.newest_ms:
        records = memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]
        header = with_timestamp(header, records, header.timestamp_type, totals.newest_ms)
    codec = header.codec if config.compression_type is None else config.compression_type
    if codec == header.codec:
        return ValidatedBatch(header, batch)
    packed = yield from recompress(header, data, Codec(codec))
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
            f"the batch of {header.size_bytes} bytes is larger than max.message.bytes={config.max_message_bytes}",
        )


def _check_segment_size(header: BatchHeader, config: LogConfig) -> None:
    if header.size_bytes > config.segment_bytes:
        raise AppendError(
            "RECORD_LIST_TOO_LARGE",
            f"the batch of {header.size_bytes} bytes is larger than segment.bytes={config.segment_bytes}",
        )


def _only_batch(batch: Bytes) -> BatchHeader:
    size_bytes = _claimed_size_bytes(batch)
    if size_bytes is None or size_bytes > len(batch):
        raise AppendError("INVALID_RECORD", "the partition of the produce request has no whole batch")
    if batch[_MAGIC_POSITION] != MAGIC:
        raise AppendError("INVALID_RECORD", f"magic {batch[_MAGIC_POSITION]} is not accepted since Produce version 3")
    if size_bytes < HEADER_SIZE_BYTES:
        raise AppendError("CORRUPT_MESSAGE", f"a batch of {size_bytes} bytes is smaller than its header")
    rest = memoryview(batch)[size_bytes:]
    next_size_bytes = _claimed_size_bytes(rest)
    if next_size_bytes is not None and next_size_bytes <= len(rest):
        raise AppendError("INVALID_RECORD", "the partition of the produce request has more than one batch")
    return BatchHeader.parse(batch)


def _claimed_size_bytes(batch: Bytes) -> int | None:
    """Return the size in the header of the first batch; null for an incomplete header, which Kafka ignores."""
    if len(batch) < LOG_OVERHEAD_BYTES:
        return None
    length = int.from_bytes(batch[8:LOG_OVERHEAD_BYTES], "big", signed=True)
    if length < _LEGACY_RECORD_SIZE_MIN_BYTES:
        raise AppendError("CORRUPT_MESSAGE", f"the batch length {length} is below {_LEGACY_RECORD_SIZE_MIN_BYTES}")
    if len(batch) < _SIZE_UP_TO_MAGIC_BYTES:
        return None
    if batch[_MAGIC_POSITION] > MAGIC:
        raise AppendError("CORRUPT_MESSAGE", f"the magic {batch[_MAGIC_POSITION]} is unknown")
    return length + LOG_OVERHEAD_BYTES


def _check_header(header: BatchHeader) -> None:
    broken = None
    if header.last_offset_delta < 0 or header.records_count != header.last_offset_delta + 1:
        broken = f"the record count is {header.records_count}, but the last offset delta {header.last_offset_delta}"
    elif header.is_control:
        broken = "a client must not write control batches"
    elif header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        broken = f"invalid sequence {header.base_sequence} of producer {header.producer_id}"
    if broken:
        raise AppendError("INVALID_RECORD", broken)
    if header.codec not in _CODECS:
        raise AppendError("UNKNOWN_SERVER_ERROR", f"the codec {header.codec} is unknown")


class _Fault(Enum):
    """Reason to reject a record: Kafka's error and its message."""

    NO_KEY = ("INVALID_RECORD", "Compacted topic cannot accept message without key")
    OUT_OF_RANGE = ("INVALID_TIMESTAMP", "Timestamp of message is out of range")
    APPEND_TIME = ("INVALID_TIMESTAMP", "Producer should not set timestamp type to LogAppendTime")


def _totals(header: BatchHeader, data: bytes | bytearray) -> Steps[RecordTotals]:
    try:
        totals = yield from total_records(header, data)
    except BatchError as broken:
        raise AppendError("INVALID_RECORD", str(broken)) from None
    if totals.records_count != header.records_count:
        message = f"the batch has {totals.records_count} records, but its record count is {header.records_count}"
        raise AppendError("INVALID_RECORD", message)
    return totals


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


def _has_invalid_timestamp(header: BatchHeader, totals: RecordTotals, config: LogConfig, now_ms: int) -> bool:
    """Whether a record may violate rule 8. A record without timestamp (-1) is valid, but may be below the bound."""
    if config.uses_log_append_time or header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.timestamp_type is TimestampType.LOG_APPEND_TIME
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    return totals.oldest_ms < earliest_ms or totals.newest_ms > now_ms + config.message_timestamp_after_max_ms


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
