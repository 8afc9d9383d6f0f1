"""Validation errors of appends, with Kafka's error codes and the invalid records (KIP-467).

Apache Kafka 4.3.1 returned the same errors for the same bytes, with two exceptions. For a batch of magic 2 that is
shorter than a header, it returned UNKNOWN_SERVER_ERROR. It rejects a transactional batch before the append.
"""

from dataclasses import replace

import pytest
from crc32c import crc32c

from fixtures.clients.record_batch import TimestampType
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import AppendError
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import BatchHeader, Codec, checksum
from reference_broker.protocol.steps import finish
from tests.reference_broker.log.batches import (
    NOW_MS,
    Compression,
    Record,
    RecordBatch,
    batch_with_timestamps,
    encode_batch,
    idempotent,
    plain,
    records,
)

ONE = RecordBatch(records(1))
TWO = RecordBatch(records(2))
HOUR_MS = 3_600_000
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")


def open_log(config: LogConfig = LogConfig()) -> UnifiedLog:  # noqa: B008 - frozen
    return UnifiedLog.open(MemoryDisk(), "orders-0", config, NOW_MS)


def error_of(batch: bytes, config: LogConfig = LogConfig(), log: UnifiedLog | None = None) -> AppendError:  # noqa: B008
    """Append a batch that is rejected, assert that the log does not change, and return the error."""
    log = log or open_log(config)
    end, size = log.log_end_offset, log.size_bytes
    with pytest.raises(AppendError) as caught:
        log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    assert (log.log_end_offset, log.size_bytes) == (end, size)
    return caught.value


def legacy(magic: int, length: int = 30) -> bytes:
    return bytes(8) + length.to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(length - 5)


def flipped(batch: bytes, position: int) -> bytes:
    return batch[:position] + bytes([batch[position] ^ 1]) + batch[position + 1 :]


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (b"", "INVALID_RECORD"),
        (plain()[:11], "INVALID_RECORD"),
        (plain()[:60], "INVALID_RECORD"),
        (plain()[:-1], "INVALID_RECORD"),
        (plain() + plain(), "INVALID_RECORD"),
        (legacy(0), "INVALID_RECORD"),
        (legacy(1), "INVALID_RECORD"),
        (legacy(3), "CORRUPT_MESSAGE"),
        (legacy(2), "CORRUPT_MESSAGE"),
        (encode_batch(ONE, length=13), "CORRUPT_MESSAGE"),
        (encode_batch(ONE, length=-1), "CORRUPT_MESSAGE"),
        (encode_batch(ONE, crc=1), "CORRUPT_MESSAGE"),
        (flipped(plain(), -1 + len(plain())), "CORRUPT_MESSAGE"),
        (encode_batch(replace(ONE, base_offset=1)), "INVALID_RECORD"),
        (encode_batch(TWO, record_count=1), "INVALID_RECORD"),
        (encode_batch(TWO, record_count=0), "INVALID_RECORD"),
        (encode_batch(TWO, record_count=-1), "INVALID_RECORD"),
        (encode_batch(replace(TWO, last_offset_delta=-1)), "INVALID_RECORD"),
        (encode_batch(replace(TWO, last_offset_delta=2), record_count=3), "INVALID_RECORD"),
        (encode_batch(replace(TWO, last_offset_delta=0), record_count=1), "INVALID_RECORD"),
        (encode_batch(replace(ONE, control=True)), "INVALID_RECORD"),
        (encode_batch(replace(ONE, producer_id=7, producer_epoch=0, base_sequence=-1)), "INVALID_RECORD"),
        (
            encode_batch(replace(ONE, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)),
            "INVALID_TXN_STATE",
        ),
    ],
)
def test_invalid_batch_is_rejected(batch, error):
    assert error_of(batch).error == error


def test_torn_second_batch_is_ignored():
    log = open_log()
    log.append(plain() + plain()[:50], leader_epoch=0, now_ms=NOW_MS)
    assert log.size_bytes == len(plain())


def test_batch_above_max_message_bytes_is_too_large():
    size = len(plain(size=500))
    assert error_of(plain(size=500), LogConfig(max_message_bytes=size - 1)).error == "MESSAGE_TOO_LARGE"
    open_log(LogConfig(max_message_bytes=size)).append(plain(size=500), leader_epoch=0, now_ms=NOW_MS)


def test_size_is_checked_before_the_checksum():
    assert error_of(encode_batch(ONE, crc=1), LogConfig(max_message_bytes=10)).error == "MESSAGE_TOO_LARGE"


def test_base_offset_is_checked_before_the_size():
    batch = encode_batch(replace(ONE, base_offset=1))
    assert error_of(batch, LogConfig(max_message_bytes=10)).error == "INVALID_RECORD"


def test_batch_larger_than_a_segment_is_rejected():
    config = LogConfig(segment_bytes=200)
    assert error_of(plain(size=500), config).error == "RECORD_LIST_TOO_LARGE"


@pytest.mark.parametrize("compression", Compression)
def test_records_without_key_in_a_compacted_topic_are_listed(compression):
    mixed = tuple(Record(b"v", key=key, timestamp_ms=NOW_MS) for key in (b"k", None, b"", None))
    error = error_of(encode_batch(RecordBatch(mixed, compression=compression)), COMPACTED)
    assert error.error == "INVALID_RECORD"
    assert [record.batch_index for record in error.record_errors] == [1, 3]


@pytest.mark.parametrize("compression", Compression)
def test_records_with_future_timestamps_are_listed(compression):
    late = batch_with_timestamps([NOW_MS, NOW_MS + HOUR_MS + 1, NOW_MS + HOUR_MS])
    error = error_of(encode_batch(replace(late, compression=compression)))
    assert error.error == "INVALID_TIMESTAMP"
    assert [record.batch_index for record in error.record_errors] == [1]


def test_records_with_old_timestamps_are_listed():
    config = LogConfig(message_timestamp_before_max_ms=1000)
    error = error_of(encode_batch(batch_with_timestamps([NOW_MS, NOW_MS - 1001, NOW_MS - 1000, -1])), config)
    assert error.error == "INVALID_TIMESTAMP"
    assert [record.batch_index for record in error.record_errors] == [1]


def test_timestamps_are_not_validated_with_log_append_time():
    log = open_log(APPEND_TIME)
    log.append(plain(timestamp_ms=NOW_MS + 2 * HOUR_MS), leader_epoch=0, now_ms=NOW_MS)
    assert finish(log.max_timestamp()) == (NOW_MS, 0, 0)


def test_batch_of_a_producer_must_not_have_log_append_time():
    claimed = encode_batch(replace(TWO, timestamp_type=TimestampType.LOG_APPEND_TIME))
    error = error_of(claimed, APPEND_TIME)
    assert error.error == "INVALID_TIMESTAMP"
    assert [record.batch_index for record in error.record_errors] == [0, 1]


def test_with_create_time_the_timestamp_type_is_corrected():
    """As in Kafka, the timestamps are validated, and the timestamp type in the attributes is set to CreateTime."""
    log = open_log()
    log.append(encode_batch(replace(TWO, timestamp_type=TimestampType.LOG_APPEND_TIME)), leader_epoch=0, now_ms=NOW_MS)
    assert log.read(0, 1000, 2)[22] & 0x08 == 0
    late = replace(TWO, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=NOW_MS + 2 * HOUR_MS)
    assert error_of(encode_batch(late), log=log).error == "INVALID_TIMESTAMP"


def test_invalid_timestamp_takes_precedence_over_missing_key():
    both = (Record(b"v", None, NOW_MS), Record(b"v", b"k", NOW_MS + 2 * HOUR_MS))
    error = error_of(encode_batch(RecordBatch(both)), COMPACTED)
    assert error.error == "INVALID_TIMESTAMP"
    assert [record.batch_index for record in error.record_errors] == [0, 1]


def undecompressable(compression: Compression) -> bytes:
    """Return a batch with a correct checksum, in which zeros replace the compressed records."""
    batch = encode_batch(RecordBatch(records(1), compression=compression))
    checked = batch[21:61] + bytes(len(batch) - 61)
    return batch[:17] + crc32c(checked).to_bytes(4, "big") + checked


@pytest.mark.parametrize("compression", [codec for codec in Compression if codec])
def test_undecompressable_records_are_rejected(compression):
    assert error_of(undecompressable(compression)).error == "UNKNOWN_SERVER_ERROR"


@pytest.mark.parametrize("compression", [codec for codec in Compression if codec])
def test_undecompressable_records_of_a_leader_are_skipped_by_timestamp_lookups(compression):
    log = open_log()
    for offset, batch in enumerate((undecompressable(compression), plain())):
        log.append_as_follower(
            offset.to_bytes(8, "big") + batch[8:12] + bytes(4) + batch[16:], leader_epoch=0, now_ms=NOW_MS
        )
    assert finish(log.offset_for_timestamp(NOW_MS)) == finish(log.max_timestamp()) == (NOW_MS, 1, 0)


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("false_ms", [-1, NOW_MS - 1, NOW_MS + 1, NOW_MS + 2 * HOUR_MS])
def test_the_max_timestamp_of_a_batch_becomes_that_of_its_records(compression, false_ms):
    log = open_log()
    batch = replace(batch_with_timestamps([NOW_MS - 2, NOW_MS]), compression=compression, max_timestamp_ms=false_ms)
    log.append(encode_batch(batch), leader_epoch=0, now_ms=NOW_MS)
    stored = log.read(0, 1000, 2)
    header = BatchHeader.parse(stored)
    assert header.max_timestamp_ms == NOW_MS
    assert header.crc == checksum(stored)
    assert finish(log.max_timestamp()) == (NOW_MS, 1, 0)


def test_unknown_codec_is_rejected():
    batch = plain()
    checked = bytes([batch[21], 5]) + batch[23:]
    assert error_of(batch[:17] + crc32c(checked).to_bytes(4, "big") + checked).error == "UNKNOWN_SERVER_ERROR"


def test_rejected_sequence_does_not_change_the_producer_state():
    log = open_log()
    log.append(idempotent(1, 0, 0, 2), leader_epoch=0, now_ms=NOW_MS)
    assert error_of(idempotent(1, 0, 3), log=log).error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.append(idempotent(1, 0, 2), leader_epoch=0, now_ms=NOW_MS)


def test_batch_above_max_message_bytes_after_recompression_is_rejected():
    """Kafka checks the size again after recompression."""
    squeezed = encode_batch(RecordBatch((Record(b"x" * 1000),), compression=Compression.GZIP))
    uncompressed = LogConfig(max_message_bytes=500, compression_type=Codec.NONE)
    assert error_of(squeezed, uncompressed).error == "MESSAGE_TOO_LARGE"
    assert open_log(LogConfig(max_message_bytes=500)).append(squeezed, leader_epoch=0, now_ms=NOW_MS).base_offset == 0
