"""The few batches whose records the broker itself writes and reads: those of its internal topics. The codec is kio's.

Batches of clients never come here; they stay opaque bytes behind the header view of `record_batch`.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch

_NOT_A_PRODUCER = -1
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A record without its surroundings."""

    key: bytes | None
    value: bytes | None


def encode_batch(records: Sequence[KeyValue], timestamp_ms: int) -> bytes:
    """One batch, uncompressed, magic 2, with base offset 0: the log gives it its own."""
    timestamp: Any = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    entries: Any = tuple(
        Record(attributes=0, timestamp=timestamp, offset=offset, key=record.key, value=record.value, headers=())  # type: ignore[arg-type]
        for offset, record in enumerate(records)
    )
    buffer = io.BytesIO()
    producer: dict[str, Any] = {"producer_id": _NOT_A_PRODUCER, "producer_epoch": -1, "base_sequence": -1}
    attributes: Any = 0
    write_new_batch(buffer, NewRecordBatch(records=entries, attributes=attributes, **producer))
    return buffer.getvalue()


def decode_batches(data: bytes) -> Iterator[tuple[int, KeyValue]]:
    """Offset and content of every record in whole batches that `encode_batch` made; control batches have none."""
    position = 0
    while position < len(data):
        batch, size = read_batch(data, position)
        position += size
        if not batch.attributes & _CONTROL:
            for record in batch.records:
                yield int(record.offset), KeyValue(record.key, record.value)
