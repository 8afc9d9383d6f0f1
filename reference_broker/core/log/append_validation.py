"""What a batch must keep before a log takes it: Kafka's checks, in Kafka's order, with Kafka's errors.

1. The bytes are exactly one whole batch of magic 2 (Produce version 3 and above).   INVALID_RECORD, CORRUPT_MESSAGE
2. It is not larger than `max.message.bytes`.                                       MESSAGE_TOO_LARGE
3. Its checksum is right.                                                            CORRUPT_MESSAGE
4. Its offsets begin at 0, its counts agree, it is no control batch.                 INVALID_RECORD
5. Every record has a key if the topic is compacted.                                 INVALID_RECORD, per record
6. Every timestamp lies within the topic's bounds, under CreateTime (KIP-937).       INVALID_TIMESTAMP, per record
7. It fits a segment.                                                                RECORD_LIST_TOO_LARGE

The sequence of an idempotent producer is looked at last (`producers`). Records are decoded for rule 5, and for rule 6
where the header's two timestamps leave a doubt; otherwise they stay opaque.
"""

from collections.abc import Callable

from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import AppendError, RecordError
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    RecordSummary,
    checksum,
    iterate_records,
)

_LEGACY_RECORD_SIZE_MIN_BYTES = 14
_SIZE_UP_TO_MAGIC_BYTES = 17
_MAGIC_POSITION = 16


def validate(records: bytes | memoryview, config: LogConfig, now_ms: int) -> BatchHeader:
    """The header of the one batch in `records`.

    :raises AppendError: the first rule that it breaks.
    """
    header = _the_one_batch(records)
    if header.size_bytes > config.max_message_bytes:
        raise AppendError(
            "MESSAGE_TOO_LARGE",
            f"a batch of {header.size_bytes} bytes where max.message.bytes is {config.max_message_bytes}",
        )
    if header.crc != checksum(records):
        raise AppendError(
            "CORRUPT_MESSAGE", f"the checksum is {checksum(records):#010x}, the batch says {header.crc:#010x}"
        )
    _check_header(header)
    if config.compacts:
        _check_each(records, lambda record: None if record.has_key else _NO_KEY, "INVALID_RECORD")
    if not config.uses_log_append_time:
        _check_timestamps(records, header, config, now_ms)
    if header.size_bytes > config.segment_bytes:
        raise AppendError(
            "RECORD_LIST_TOO_LARGE",
            f"a batch of {header.size_bytes} bytes where segment.bytes is {config.segment_bytes}",
        )
    return header


_NO_KEY = "Compacted topic cannot accept message without key"


def _the_one_batch(records: bytes | memoryview) -> BatchHeader:
    size = _first_batch_size(records)
    if size is None or size > len(records):
        raise AppendError(
            "INVALID_RECORD", "a produce request carries exactly one whole batch per partition, here is none"
        )
    if records[_MAGIC_POSITION] != MAGIC:
        raise AppendError("INVALID_RECORD", f"batches of magic {records[_MAGIC_POSITION]} ended with Produce version 2")
    if size < HEADER_SIZE_BYTES:
        raise AppendError("CORRUPT_MESSAGE", f"a batch of {size} bytes is smaller than its header")
    if size < len(records) and _first_batch_size(records[size:]) is not None:
        raise AppendError("INVALID_RECORD", "a produce request carries exactly one batch per partition, here are more")
    return BatchHeader.parse(records)


def _first_batch_size(records: bytes | memoryview) -> int | None:
    """The size that the first batch claims; null where too few bytes are left to say."""
    if len(records) < LOG_OVERHEAD_BYTES:
        return None
    length = int.from_bytes(records[8:LOG_OVERHEAD_BYTES], "big", signed=True)
    if length < _LEGACY_RECORD_SIZE_MIN_BYTES:
        raise AppendError("CORRUPT_MESSAGE", f"a record of {length} bytes is smaller than any")
    if len(records) < _SIZE_UP_TO_MAGIC_BYTES:
        return None
    if records[_MAGIC_POSITION] > MAGIC:
        raise AppendError("CORRUPT_MESSAGE", f"no batch has magic {records[_MAGIC_POSITION]}")
    return length + LOG_OVERHEAD_BYTES


def _check_header(header: BatchHeader) -> None:
    broken = None
    if header.base_offset != 0:
        broken = f"the base offset is {header.base_offset} where a client sends 0"
    elif header.last_offset_delta < 0 or header.records_count != header.last_offset_delta + 1:
        broken = f"{header.records_count} records where the offsets tell of {header.last_offset_delta + 1}"
    elif header.is_control:
        broken = "clients do not write control batches"
    elif header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        broken = f"sequence {header.base_sequence} of producer {header.producer_id}"
    if broken:
        raise AppendError("INVALID_RECORD", broken)


def _check_timestamps(records: bytes | memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Between the bounds around the broker's time. Both timestamps of the header inside them leave no doubt."""
    earliest_ms, latest_ms = (
        now_ms - config.message_timestamp_before_max_ms,
        now_ms + config.message_timestamp_after_max_ms,
    )

    def problem(timestamp_ms: int) -> str | None:
        if timestamp_ms == NO_TIMESTAMP or earliest_ms <= timestamp_ms <= latest_ms:
            return None
        return f"Timestamp {timestamp_ms} of message is out of range [{earliest_ms}, {latest_ms}]"

    if problem(header.base_timestamp_ms) or problem(header.max_timestamp_ms):
        base_ms = header.base_timestamp_ms
        _check_each(records, lambda record: problem(base_ms + record.timestamp_delta_ms), "INVALID_TIMESTAMP")


def _check_each(records: bytes | memoryview, problem: Callable[[RecordSummary], str | None], error: str) -> None:
    """Raise with every record that has a problem."""
    try:
        found = [(index, problem(record)) for index, record in enumerate(iterate_records(records))]
    except BatchError as broken:
        raise AppendError("INVALID_RECORD", str(broken)) from None
    errors = tuple(RecordError(index, message) for index, message in found if message)
    if errors:
        raise AppendError(error, "One or more records have been rejected", errors)
