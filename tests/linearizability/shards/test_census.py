"""Plan of a large partition: parts with about equal numbers of rows, for any distribution of offsets."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linearizability.shards import runs
from linearizability.shards.census import Counted, plan
from linearizability.shards.runs import HIGHEST, Index, RunWriter
from linearizability.shards.spilling import SENT

PLACE = ("t", None, 0)
PART_ROWS = 200
OFFSETS = st.lists(st.integers(0, 3000) | st.sampled_from([10**15, 2**62]), min_size=1, max_size=5)


def planned_parts(folder, chunks):
    """Return the planned parts of a partition; each chunk is an array of offsets, written by one call."""
    rows = sum(len(chunk) for chunk in chunks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BATCH_ROWS", 16)
        writer = RunWriter(folder, 0)
        for chunk in chunks:
            writer.write("sends", _sends(len(chunk)), [PLACE], np.zeros(len(chunk), np.intp), key=chunk)
        writer.close()
    index = Index([(writer.places, writer.files)], [PLACE])
    (shard,) = plan({PLACE: Counted(rows, 0)}, PART_ROWS, index.stretches).shards
    return shard.parts


def _sends(count):
    fields = [f for f in SENT if f.name != "log"]
    arrays = [pa.nulls(count, f.type) if f.nullable else pa.array(np.zeros(count)).cast(f.type) for f in fields]
    return pa.table(arrays, schema=pa.schema(fields))


@settings(max_examples=60)
@given(far=OFFSETS, width=st.integers(1, 5), chunks=st.integers(1, 4), unknown=st.integers(0, 30))
@example(far=[10**15], width=1, chunks=1, unknown=0)
def test_parts_have_about_as_many_rows_each(tmp_path_factory, far, width, chunks, unknown):
    """Split a partition with 2000 offsets `width` apart, the offsets `far`, and `unknown` records without an offset."""
    offsets = np.concatenate([np.arange(2000) * width, far, np.full(unknown, -1)]).astype(np.int64)
    parts = planned_parts(tmp_path_factory.mktemp("runs"), [offsets[number::chunks] for number in range(chunks)])
    assert [part.begin for part in parts] == [0, *(part.end for part in parts[:-1])]
    assert parts[-1].end == HIGHEST
    begins = [part.begin for part in parts]
    counts = np.bincount(np.searchsorted(begins, offsets[offsets >= 0], side="right") - 1)
    assert counts.max() <= 1.5 * PART_ROWS


def test_partition_of_unknown_offsets_only_is_one_part(tmp_path):
    assert len(planned_parts(tmp_path, [np.full(1000, -1)])) == 1
