"""Batches for tests of the log, encoded by the test clients' codec, which shares no code with the broker."""

from collections.abc import Sequence
from dataclasses import replace

from fixtures.clients.record_batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Compression,
    Record,
    RecordBatch,
    decode_batches,
    encode_batch,
)

NOW_MS = 1_700_000_000_000


def records(count: int, timestamp_ms: int = NOW_MS, size: int = 10, key: bytes | None = b"k") -> tuple[Record, ...]:
    return tuple(
        Record(value=str(n).encode().ljust(size, b"."), key=key, timestamp_ms=timestamp_ms) for n in range(count)
    )


def batch_with_timestamps(timestamps_ms: Sequence[int], size: int = 10) -> RecordBatch:
    return RecordBatch(tuple(Record(bytes(size), b"k", timestamp_ms) for timestamp_ms in timestamps_ms))


def plain(
    count: int = 1, timestamp_ms: int = NOW_MS, size: int = 10, compression: Compression = Compression.NONE
) -> bytes:
    return encode_batch(RecordBatch(records(count, timestamp_ms, size), compression=compression))


def idempotent(
    producer_id: int, epoch: int, base_sequence: int, count: int = 1, timestamp_ms: int = NOW_MS, size: int = 10
) -> bytes:
    batch = RecordBatch(records(count, timestamp_ms, size))
    return encode_batch(replace(batch, producer_id=producer_id, producer_epoch=epoch, base_sequence=base_sequence))


def offsets(data: bytes) -> list[int]:
    """Return the offsets of all records in complete batches."""
    return [record.offset for batch in decode_batches(data) for record in batch.records if record.offset is not None]


__all__ = [
    "NOW_MS",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "Compression",
    "Record",
    "RecordBatch",
    "batch_with_timestamps",
    "decode_batches",
    "encode_batch",
    "idempotent",
    "offsets",
    "plain",
    "records",
]
