"""Serialization of task results: they are equal after a round trip, and slices do not include the whole table."""

import pyarrow as pa

from linearizability.anomalies.catalogue import ShardJudgement
from linearizability.judgement import Anomaly, Evidence, Verdict
from linearizability.shards.serialization import packed, unpacked


def test_a_result_is_unchanged():
    finding = Anomaly("duplicate", Verdict.VIOLATION, 1, (Evidence((1, 2), "t", 0, 5, None, "twice"),))
    facts = pa.table({"op_id": pa.array([1, None], pa.int64()), "txn_id": pa.array(["x", "y"]).dictionary_encode()})
    result = ShardJudgement((finding,), {"edges": facts, "none": facts.slice(0, 0)})
    assert unpacked(packed(result)) == result


def test_slices_are_serialized_without_their_tables():
    whole = pa.table({"op_id": pa.array(range(100_000)), "txn_id": pa.array(["x"] * 100_000)})
    slices = pa.concat_tables([whole.slice(at, 10) for at in range(0, 1000, 10)])
    assert len(packed(slices)) < whole.nbytes / 10
    assert unpacked(packed(slices)).equals(slices)
