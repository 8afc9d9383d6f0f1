"""Recompression of batches by the broker; the test clients' decoder reads the result."""

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given

from fixtures.clients.record_batch import Compression, decode_batches, encode_batch
from reference_broker.protocol.recompression import recompress
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader, Codec, decompress
from reference_broker.protocol.steps import finish
from tests.reference_broker.protocol.test_record_batch import BATCHES


@given(BATCHES, st.sampled_from(Codec))
def test_recompression_changes_only_the_compression(batch, codec):
    data = encode_batch(batch)
    header = BatchHeader.parse(data)
    records = finish(decompress(header, data[HEADER_SIZE_BYTES:], 2**20))
    changed = finish(recompress(header, records, codec))
    (found,) = decode_batches(changed)  # validates length and checksum
    (before,) = decode_batches(data)
    assert found == replace(before, compression=Compression(codec))
