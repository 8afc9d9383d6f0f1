"""What tasks tell the driver: the same when it arrives, and no larger than it is."""

import pyarrow as pa

from linearizability.anomalies.catalogue import ShardJudgement
from linearizability.judgement import Anomaly, Evidence, Verdict
from linearizability.shards.answers import packed, unpacked


def test_an_answer_arrives_as_it_was():
    finding = Anomaly("duplicate", Verdict.VIOLATION, 1, (Evidence((1, 2), "t", 0, 5, None, "twice"),))
    facts = pa.table({"op_id": pa.array([1, None], pa.int64()), "txn_id": pa.array(["x", "y"]).dictionary_encode()})
    answer = ShardJudgement((finding,), {"edges": facts, "none": facts.slice(0, 0)})
    assert unpacked(packed(answer)) == answer


def test_slices_do_not_bring_along_what_they_are_cut_from():
    whole = pa.table({"op_id": pa.array(range(100_000)), "txn_id": pa.array(["x"] * 100_000)})
    slices = pa.concat_tables([whole.slice(at, 10) for at in range(0, 1000, 10)])
    assert len(packed(slices)) < whole.nbytes / 10
    assert unpacked(packed(slices)).equals(slices)
