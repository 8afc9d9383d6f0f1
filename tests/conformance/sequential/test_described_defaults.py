"""Batches of an exact size, with which `described_defaults` tests the limits that a broker describes."""

import pytest

from conformance.sequential.described_defaults import record_of_batch
from conformance.sequential.model.produce import batch_size_bytes
from conformance.sequential.steps import Batch

SIZES = [*range(200), *range(2**13, 2**13 + 200), *range(2**20, 2**20 + 150)]
SMALLEST = 71
"""Size of a batch with a key of three bytes and an empty value."""


@pytest.mark.parametrize("sizes", [SIZES[at : at + 50] for at in range(0, len(SIZES), 50)], ids=lambda each: each[0])
def test_a_record_makes_a_batch_of_the_size_if_any_does(sizes):
    found = {size: record_of_batch(size, 0) for size in sizes}
    assert all(batch_size_bytes(Batch((record,))) == size for size, record in found.items() if record is not None)
    missing = [size for size in sizes if found[size] is None and size >= SMALLEST]
    assert len(missing) <= 1, missing  # where the length of the record gains a byte, one size is impossible
