"""Batches of internal topics compared with kio's codec."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch

from fixtures.clients.record_batch import Compression
from fixtures.clients.record_batch import decode_batches as decode_by_clients
from reference_broker.protocol.record_batch import BatchError, BatchHeader, checksum
from reference_broker.protocol.records import KeyValue, decode_batches, encode_batch
from tests.reference_broker.log.batches import plain

NOW_MS = 1_700_000_000_123
contents = st.none() | st.binary(max_size=300) | st.integers(0, 70_000).map(bytes)
batches = st.lists(st.builds(KeyValue, contents, contents), min_size=1, max_size=70)


@given(batches)
def test_kio_reads_what_we_write(records: list[KeyValue]) -> None:
    written = encode_batch(records, NOW_MS)
    assert BatchHeader.parse(written).crc == checksum(written)
    found, size = read_batch(written, 0)
    assert size == len(written)
    assert [(record.key, record.value) for record in found.records] == [(each.key, each.value) for each in records]
    assert [record.offset for record in found.records] == list(range(len(records)))
    assert BatchHeader.parse(written).base_timestamp_ms == BatchHeader.parse(written).max_timestamp_ms == NOW_MS


@given(st.lists(batches, min_size=1, max_size=3))
def test_we_read_what_kio_writes(written: list[list[KeyValue]]) -> None:
    buffer = io.BytesIO()
    producer: dict[str, Any] = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    timestamp = datetime(2023, 11, 14, tzinfo=UTC)
    record_type: Any = Record
    for records in written:
        entries = tuple(
            record_type(attributes=0, timestamp=timestamp, offset=n, key=each.key, value=each.value, headers=())
            for n, each in enumerate(records)
        )
        attributes: Any = 0
        write_new_batch(buffer, NewRecordBatch(records=entries, attributes=attributes, **producer))
    expected = [(offset, record) for records in written for offset, record in enumerate(records)]
    assert list(decode_batches(buffer.getvalue())) == expected


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.ZSTD])
def test_compressed_batches_are_decoded(compression: Compression) -> None:
    expected = [record.value for record in next(iter(decode_by_clients(plain(3)))).records]
    assert [record.value for _, record in decode_batches(plain(3, compression=compression))] == expected


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data[:30], lambda data: data[:16] + b"\x01" + data[17:]],
    ids=["torn", "torn in its header", "older magic"],
)
def test_incomplete_batch_is_rejected(damage: Any) -> None:
    with pytest.raises(BatchError):
        list(decode_batches(damage(encode_batch([KeyValue(b"k", b"v")], NOW_MS))))
