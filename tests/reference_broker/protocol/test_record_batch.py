"""Batch headers and records compared with the test clients' codec, which decodes every record."""

import gzip
from contextlib import suppress
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fixtures.clients.record_batch import Compression, Record, RecordBatch, decode_batches, encode_batch
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    BatchError,
    BatchHeader,
    CompressionError,
    DecompressedSizeError,
    TimestampType,
    checksum,
    decompress,
    iterate_records,
    total_records,
    with_timestamp,
)
from reference_broker.protocol.steps import BYTES_PER_STEP, finish

_MAX_BYTES = 2**20

RECORDS = st.lists(
    st.builds(
        Record,
        value=st.none() | st.binary(max_size=200),
        key=st.none() | st.binary(max_size=5),
        timestamp_ms=st.integers(0, 2**45),
        headers=st.just(()) | st.just((("a", b"b"), ("c", None))),
    ),
    min_size=1,
    max_size=20,
).map(tuple)
BATCHES = st.builds(
    RecordBatch,
    records=RECORDS,
    base_offset=st.integers(0, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
    compression=st.sampled_from(Compression),
    transactional=st.booleans(),
    control=st.booleans(),
    producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
)


def record_bytes(data: bytes) -> bytes:
    return data[HEADER_SIZE_BYTES:]


def summaries(header: BatchHeader, records: bytes):
    return iterate_records(header, finish(decompress(header, records, _MAX_BYTES)))


@given(BATCHES)
def test_header_round_trips(batch):
    data = encode_batch(batch)
    header = BatchHeader.parse(b"before" + data, 6)
    assert header.pack() + record_bytes(data) == data
    assert header.size_bytes == len(data)
    assert header.crc == checksum(data)
    assert header.codec == batch.compression
    assert (header.base_offset, header.leader_epoch) == (batch.base_offset, batch.leader_epoch)
    assert header.last_offset == batch.next_offset - 1
    assert header.records_count == len(batch.records)
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in batch.records)
    assert (header.is_transactional, header.is_control) == (batch.transactional, batch.control)
    producer = (header.producer_id, header.producer_epoch, header.base_sequence)
    assert producer == (batch.producer_id, batch.producer_epoch, batch.base_sequence)


@given(BATCHES)
def test_record_summaries_equal_the_records(batch):
    data = encode_batch(batch)
    found = list(summaries(BatchHeader.parse(data), record_bytes(data)))
    assert [(record.timestamp_ms, record.has_key) for record in found] == [
        (record.timestamp_ms, record.key is not None) for record in batch.records
    ]
    assert [record.offset_delta for record in found] == list(range(len(found)))


@given(BATCHES)
def test_totals_are_those_of_the_decoded_records(batch):
    data = encode_batch(replace(batch, compression=Compression.NONE))
    header = BatchHeader.parse(data)
    timestamps_ms = [record.timestamp_ms for record in iterate_records(header, data[HEADER_SIZE_BYTES:])]
    totals = finish(total_records(header, data[HEADER_SIZE_BYTES:]))
    assert totals == (len(batch.records), min(timestamps_ms), max(timestamps_ms))
    for damaged in (data[HEADER_SIZE_BYTES:] + b"\x02", data[HEADER_SIZE_BYTES:-1]):
        with pytest.raises(BatchError):
            finish(total_records(header, damaged))


@pytest.mark.parametrize("length", [0, 1, 63, 64, 200, 8191, 8192, 100_000, 3_000_000])
def test_records_of_any_length_are_counted(length):
    data = encode_batch(RecordBatch((Record(bytes(length)), Record(b"x"))))
    assert finish(total_records(BatchHeader.parse(data), data[HEADER_SIZE_BYTES:])).records_count == 2


@pytest.mark.parametrize("records", [b"\x01", b"\xff" * 11, b"\x80", b"\x00", b"\x0e\x00" + b"\xff" * 11])
def test_invalid_records_are_rejected(records):
    with pytest.raises(BatchError):
        finish(total_records(BatchHeader.parse(encode_batch(RecordBatch((Record(b"x"),)))), records))


@given(BATCHES, st.integers(0, 2**45), st.sampled_from(TimestampType))
def test_batch_with_a_new_timestamp_can_be_decoded(batch, timestamp_ms, timestamp_type):
    data = encode_batch(batch)
    header = with_timestamp(BatchHeader.parse(data), record_bytes(data), timestamp_type, timestamp_ms)
    (decoded,) = decode_batches(header.pack() + record_bytes(data))
    assert decoded.max_timestamp_ms == timestamp_ms
    assert decoded.timestamp_type == timestamp_type
    assert [record.value for record in decoded.records] == [record.value for record in batch.records]


@given(st.integers(0, 2**31 - 1), st.integers(0, 100))
def test_sequences_wrap_to_zero(base_sequence, delta):
    header = BatchHeader(0, 0, 0, 2, 0, 0, delta, 0, 0, 1, 0, base_sequence, delta + 1)
    sequence = base_sequence
    for _ in range(delta):
        sequence = 0 if sequence == 2**31 - 1 else sequence + 1
    assert header.last_sequence == sequence


@given(st.binary(max_size=HEADER_SIZE_BYTES - 1))
def test_incomplete_header_is_rejected(data):
    with pytest.raises(BatchError):
        BatchHeader.parse(data)


@given(BATCHES, st.data())
def test_damaged_records_raise_only_batch_error(batch, data):
    """An append does not validate all records, so a lookup by timestamp may read invalid records."""
    encoded = bytearray(encode_batch(batch))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(HEADER_SIZE_BYTES, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    header = BatchHeader.parse(encoded)
    with suppress(BatchError):
        assert len(list(summaries(header, record_bytes(bytes(encoded))))) == header.records_count


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"])
def test_snappy_block_that_claims_gigabytes_is_rejected(size):
    header = BatchHeader.parse(encode_batch(RecordBatch((Record(b"v"),), compression=Compression.SNAPPY)))
    with pytest.raises(BatchError):
        finish(decompress(header, size + bytes(20), _MAX_BYTES))


@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.NONE])
def test_decompressed_size_is_limited(compression):
    data = encode_batch(RecordBatch((Record(bytes(_MAX_BYTES)),), compression=compression))
    header = BatchHeader.parse(data)
    whole = finish(decompress(header, record_bytes(data), 2 * _MAX_BYTES))
    assert finish(decompress(header, record_bytes(data), len(whole))) == whole
    with pytest.raises(DecompressedSizeError):
        finish(decompress(header, record_bytes(data), len(whole) - 1))


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_decompression_yields_pieces_and_stops_at_the_limit(compression):
    data = encode_batch(RecordBatch((Record(bytes(64 * _MAX_BYTES)),), compression=compression))
    steps = decompress(BatchHeader.parse(data), record_bytes(data), _MAX_BYTES)
    for _ in range(1 + _MAX_BYTES // BYTES_PER_STEP):
        next(steps)
    with pytest.raises(DecompressedSizeError):
        next(steps)


@pytest.mark.parametrize("rest", [b"", b"other bytes"])
@pytest.mark.parametrize("members", [1, 2, 500])
def test_all_members_of_a_gzip_stream_are_decompressed_and_other_bytes_after_them_ignored(members, rest):
    data = encode_batch(RecordBatch((Record(b"value" * 100),), compression=Compression.GZIP))
    whole = finish(decompress(BatchHeader.parse(data), record_bytes(data), _MAX_BYTES))
    pieces = [whole[index * len(whole) // members : (index + 1) * len(whole) // members] for index in range(members)]
    stream = b"".join(map(gzip.compress, pieces)) + rest
    assert finish(decompress(BatchHeader.parse(data), stream, _MAX_BYTES)) == whole


def test_a_second_member_that_is_truncated_is_rejected():
    data = encode_batch(RecordBatch((Record(b"value" * 100),), compression=Compression.GZIP))
    stream = record_bytes(data) + gzip.compress(bytes(1000))[:-12]
    with pytest.raises(CompressionError):
        finish(decompress(BatchHeader.parse(data), stream, _MAX_BYTES))


def test_truncated_gzip_stream_is_rejected():
    data = encode_batch(RecordBatch((Record(b"value" * 100),), compression=Compression.GZIP))
    with pytest.raises(CompressionError):
        finish(decompress(BatchHeader.parse(data), record_bytes(data)[:-12], _MAX_BYTES))
