"""Recompression of batches by the broker; the test clients' decoder reads the result."""

import os
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given

from fixtures.clients.record_batch import Compression, Record, RecordBatch, decode_batches, encode_batch
from reference_broker.protocol.recompression import recompress
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader, Codec, decompress
from reference_broker.protocol.steps import finish
from tests.reference_broker.protocol.test_record_batch import BATCHES


def test_lz4_blocks_are_independent():
    """Kafka's `Lz4BlockInputStream` rejects a frame with dependent blocks."""
    batch = RecordBatch((Record(b"x" * 300_000), Record(os.urandom(100_000))))
    data = encode_batch(batch)
    changed = finish(recompress(BatchHeader.parse(data), data[HEADER_SIZE_BYTES:], Codec.LZ4))
    independent = 0x20
    assert changed[HEADER_SIZE_BYTES + 4] & independent
    (found,) = decode_batches(changed)
    assert [record.value for record in found.records] == [record.value for record in batch.records]


@given(BATCHES, st.sampled_from(Codec))
def test_recompression_changes_only_the_compression(batch, codec):
    data = encode_batch(batch)
    header = BatchHeader.parse(data)
    records = finish(decompress(header, data[HEADER_SIZE_BYTES:], 2**20))
    changed = finish(recompress(header, records, codec))
    (found,) = decode_batches(changed)  # validates length and checksum
    (before,) = decode_batches(data)
    assert found == replace(before, compression=Compression(codec))
