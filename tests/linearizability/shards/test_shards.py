"""Judgement by shards: it equals the judgement of the whole history, including the evidence.

This is true for any number of rows in a part. It is also true if the sieve removes clean records, so that the anomaly
definitions judge only the rest.
"""

import random
import shutil
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability import check
from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.history.schema import SCHEMAS
from linearizability.shards import laying_out, runs, spilling
from linearizability.shards.engine import judge_layout
from linearizability.shards.laying_out import lay_out
from linearizability.shards.manifest import current_layout
from linearizability.shards.running import run_here
from linearizability.shards.writing import LayoutWriter
from linearizability.synthetic.planted_anomalies import PLANTED_ANOMALIES as SYNTHETIC_ANOMALIES
from linearizability.synthetic.writing import Request, history
from tests.linearizability.anomalies.arbitrary_histories import arbitrary_group_history, arbitrary_history, well_formed
from tests.linearizability.anomalies.dense_transactions import dense_transactions
from tests.linearizability.anomalies.faulty_cluster import (
    PLANTED_CLUSTER_ANOMALIES,
    FaultyCluster,
    arbitrary_cluster_history,
)
from tests.linearizability.anomalies.histories import Tables
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.anomalies.planted_anomalies import PLANTED_ANOMALIES
from tests.linearizability.anomalies.planted_group_anomalies import PLANTED_GROUP_ANOMALIES
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition
from tests.linearizability.many import examples

pytestmark = pytest.mark.sampled(4)

SEEDS = st.integers(0, 2**32)
PLANTED_SEQ = 10_000
"""Lowest `seq` of a read that a planted anomaly adds to a poll; other reads have lower ones."""


def judge_by_shards(run, part_rows):
    """Return the judgement of a run by shards whose parts have about `part_rows` rows."""
    history = open_history(run)
    return judge_layout(history, lay_out(history, run_here, part_rows), run_here)


def arbitrary(rng):
    """Return an arbitrary history without format violations."""
    make = rng.choice([arbitrary_history, arbitrary_group_history, arbitrary_cluster_history, dense_transactions])
    tables = well_formed(make(rng))
    # All records with a value get the same key, because the definitions may use any key of a value with several.
    for row in tables.rows["records"]:
        if row["value"] is not None:
            row["key"] = "ab"[row["value"] % 2]
    return tables


def planted(rng):
    """Return a valid history with a few planted anomalies."""
    kind = rng.randrange(5)
    if kind == 0:
        tables, anomalies = Pipeline(rng).run(rng.randrange(5, 60)), PLANTED_GROUP_ANOMALIES
    elif kind == 1:
        tables, anomalies = FaultyCluster(rng).run(rng.randrange(1, 40)), PLANTED_CLUSTER_ANOMALIES
    else:
        simulation = SimulatedPartition(rng, weak=rng.random() < 0.3, unclean=kind == 2, positions=rng.random() < 0.9)
        tables, anomalies = simulation.run(rng.randrange(5, 60)), PLANTED_ANOMALIES
    if tables.rows["positions"]:
        for name in rng.sample(sorted(anomalies), rng.randrange(3)):
            anomalies[name](tables, rng)
    planted_reads = [row for row in tables.rows["records"] if row["seq"] >= PLANTED_SEQ]
    for number, row in enumerate(planted_reads):
        row["seq"] += number  # several planted anomalies may have added reads with the same `seq` to one poll
    return well_formed(tables)


def synthetic(rng):
    """Return a synthetic history with up to two planted anomalies."""
    tables = Tables(topics={"orders": {"replication.factor": "3", "min.insync.replicas": "2"}})
    anomalies = [
        name for name in rng.sample(sorted(SYNTHETIC_ANOMALIES), rng.randrange(3)) if not name.startswith("cycle")
    ]
    for part in history(Request(rng.randrange(60, 240), rng.randrange(1, 3), 0.0, anomalies, rng.randrange(2**32))):
        for name, table in part.items():
            tables.rows[name] += table.to_pylist()
    return tables


@pytest.mark.parametrize("make", [arbitrary, planted])
@given(seed=SEEDS)
@examples(30)
def test_judgement_by_shards_equals_that_of_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    run = make(rng).write(tmp_path_factory.mktemp("run") / "run", files=rng.randrange(1, 3))
    expected = judge_history(open_history(run))
    assert judge_by_shards(run, rng.choice([10**6, rng.randrange(1, 12)])) == expected


def remove_topic_ids(tables, rng):
    """For each topic name with at most one id, set this id in a random share of the rows, and null in the others."""
    rows = [row for name in tables.rows for row in tables.rows[name] if row.get("topic") is not None]
    ids = {}
    for row in rows:
        ids.setdefault(row["topic"], set()).add(row["topic_id"])
    id_by_topic = {topic: min(found - {None}, default="X") for topic, found in ids.items() if len(found - {None}) <= 1}
    share = rng.choice([0.02, 0.5, 0.98])
    for row in rows:
        if row["topic"] in id_by_topic:
            row["topic_id"] = id_by_topic[row["topic"]] if rng.random() < share else None


@pytest.mark.parametrize("make", [arbitrary, planted])
@given(seed=SEEDS)
@examples(30)
def test_rows_without_a_topic_id_belong_to_the_only_topic_of_the_name(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    tables = make(rng)
    remove_topic_ids(tables, rng)
    run = tables.write(tmp_path_factory.mktemp("run") / "run", files=rng.randrange(1, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BATCH_ROWS", rng.choice([2, 5, 10**6]))
        assert judge_by_shards(run, rng.choice([10**6, rng.randrange(1, 12)])) == judge_history(open_history(run))


def test_partition_is_split_if_only_one_row_has_the_topic_id(tmp_path):
    tables = synthetic(random.Random(1))
    with_all_ids = lay_out(open_history(tables.write(tmp_path / "all")), run_here, 20)
    for row in (row for table in tables.rows.values() for row in table):
        if "topic_id" in row and row is not tables.rows["states"][0]:
            row["topic_id"] = None
    with_one_id = lay_out(open_history(tables.write(tmp_path / "one")), run_here, 20)
    assert any(shard.is_cut for shard in with_all_ids.shards)
    assert (with_one_id.places, with_one_id.shards) == (with_all_ids.places, with_all_ids.shards)


def test_partition_with_one_distant_offset_is_split_evenly(tmp_path):
    tables = synthetic(random.Random(1))
    placed = [row for row in tables.rows["records"] if row["direction"] == "send" and row["offset"] is not None]
    placed[0]["offset"] = 10**15
    layout = lay_out(open_history(tables.write(tmp_path / "run")), run_here, 20)
    files = [
        layout.part_file(number, part, name)
        for number, shard in enumerate(layout.shards)
        for part in range(len(shard.parts))
        for name in ("sends", "reads")
    ]
    assert len(files) > 2 * len(layout.shards)
    assert max(pq.read_metadata(path).num_rows for path in files) <= 20


def make_unfinished(run, tables, rng):
    """Move some operations of a run and their records to its journal, as if the run had been killed."""
    journal = run / "history" / "_journal"
    journal.mkdir()
    unfinished = [row["op_id"] for row in tables.rows["operations"] if rng.random() < 0.3]
    for name in ("operations", "records"):
        path = run / "history" / f"{name}.parquet"
        table = pq.read_table(path) if path.exists() else SCHEMAS[name].empty_table()
        is_unfinished = pc.is_in(table["op_id"], value_set=pa.array(unfinished, pa.int64()))
        pq.write_table(table.filter(is_unfinished), journal / f"{name}-000000.parquet")
        pq.write_table(table.filter(pc.invert(is_unfinished)), path)


@pytest.mark.parametrize("make", [arbitrary, planted])
@given(seed=SEEDS)
@examples(20)
def test_judgement_of_a_killed_run_by_shards_equals_that_of_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    tables = make(rng)
    run = tables.write(tmp_path_factory.mktemp("run") / "run")
    make_unfinished(run, tables, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "LARGE_ROWS", 0)
        patch.setattr(check, "Processes", lambda: nullcontext(run_here))
        patch.setattr(check, "judge_history", lambda _: pytest.fail("read into memory"))
        patch.setattr(laying_out, "PART_ROWS", rng.choice([10**6, rng.randrange(1, 12)]))
        judgement = check.judge(run)
    assert judgement == judge_history(open_history(run))
    assert not list((run / "history").glob("_shards*"))


def chunks(history, rng):
    """Return the tables of a history in three chunks, each with some of the operations.

    The last chunk also has the tables whose rows belong to no operation.
    """
    chunk_of = {op_id: rng.randrange(3) for op_id in history.table("operations")["op_id"].to_pylist()}
    found = [{}, {}, {}]
    for name in SCHEMAS:
        table = history.table(name)
        if "op_id" not in SCHEMAS[name].names:
            found[2][name] = table
            continue
        numbers = [chunk_of[op_id] for op_id in table["op_id"].to_pylist()]
        for chunk, tables in enumerate(found):
            tables[name] = table.filter(pa.array([number == chunk for number in numbers], pa.bool_()))
    return [{name: table for name, table in tables.items() if table.num_rows} for tables in found]


@pytest.mark.parametrize("make", [arbitrary, planted])
@given(seed=SEEDS)
@examples(20)
def test_judgement_by_a_layout_created_while_writing_equals_that_of_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("run")
    whole = open_history(make(rng).write(folder / "whole"))
    writer = LayoutWriter(folder / "run", rng.choice([1, 10**6]))
    shutil.copytree(folder / "whole", folder / "run", ignore=lambda *_: [f"{name}.parquet" for name in SCHEMAS])
    for number, chunk in enumerate(chunks(whole, rng)):
        for name, table in chunk.items():
            (folder / "run" / "history" / name).mkdir(exist_ok=True)
            pq.write_table(table, folder / "run" / "history" / name / f"{number}.parquet")
        writer.add(chunk)
    history = open_history(folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laying_out, "PART_ROWS", rng.choice([10**6, rng.randrange(1, 12)]))
        is_created = writer.finish(history, run_here)
    layout = current_layout(history)
    assert is_created == (layout is not None)
    expected = judge_history(history)
    assert judge_layout(history, layout or lay_out(history, run_here), run_here) == expected


def _remove_read(rng, tables, row, other):
    if row["direction"] == "read":
        tables.rows["records"].remove(row)


def _shift_offset(rng, tables, row, other):
    if row["offset"] is not None:
        row["offset"] = max(0, row["offset"] + rng.choice([-1, 1, 3]))


def _change_value_read(rng, tables, row, other):
    if row["direction"] == "read":
        row["value"] = other["value"]


def _repeat_read(rng, tables, row, other):
    if row["direction"] == "read":
        repeated = {**row, "seq": PLANTED_SEQ + len(tables.rows["records"]), "offset": other["offset"]}
        tables.rows["records"].append(repeated)


def _change_position(rng, tables, row, other):
    rng.choice(tables.rows["positions"])[rng.choice(["before", "after"])] += rng.choice([0, 1, 2])


def _decrease_high_watermark(rng, tables, row, other):
    state = rng.choice(tables.rows["states"])
    state["high_watermark"] = rng.randrange((state["high_watermark"] or 0) + 1)


def _operation(tables, row):
    """Return the operation of a record."""
    return next(operation for operation in tables.rows["operations"] if operation["op_id"] == row["op_id"])


DURATIONS_NS = [1, 10**6, 10**7, 10**9]
CHANGES = [
    _remove_read,
    _shift_offset,
    _change_value_read,
    _repeat_read,
    _change_position,
    _decrease_high_watermark,
    lambda rng, tables, row, other: row.update(offset=None),
    lambda rng, tables, row, other: row.update(offset=10**15),
    lambda rng, tables, row, other: row.update(leader_epoch=rng.randrange(3)),
    lambda rng, tables, row, other: row.update(intact=False),
    lambda rng, tables, row, other: row.update(value=None, key="k"),
    lambda rng, tables, row, other: _operation(tables, row).update(outcome=rng.choice(["info", "fail"])),
    lambda rng, tables, row, other: _operation(tables, row).update(process=_operation(tables, other)["process"]),
    lambda rng, tables, row, other: _operation(tables, row).update(
        complete_ns=_operation(tables, row)["complete_ns"] + rng.choice(DURATIONS_NS)
    ),
    lambda rng, tables, row, other: _operation(tables, row).update(
        invoke_ns=_operation(tables, row)["invoke_ns"] - rng.choice(DURATIONS_NS)
    ),
]
"""Functions that change a history as a defect of a broker, client or network would.

Their last two arguments are records. Most functions change the first one or its operation. Some copy a column of the
second one or of its operation.
"""


def change(tables, rng):
    """Apply one of `CHANGES` to arbitrary records."""
    records = tables.rows["records"]
    rng.choice(CHANGES)(rng, tables, rng.choice(records), rng.choice(records))


@given(seed=SEEDS)
@examples(60)
def test_judgement_with_the_sieve_equals_that_of_the_whole(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = synthetic(rng)
    for _ in range(rng.randrange(6)):
        change(tables, rng)
    run = tables.write(tmp_path_factory.mktemp("run") / "run")
    with pytest.MonkeyPatch.context() as patch:
        # Some of these histories violate rules of the format; the judgement must be equal nevertheless.
        patch.setattr(laying_out, "_validate", lambda *_: None)
        patch.setattr(spilling, "check_rows", lambda *_: None)
        assert judge_by_shards(run, rng.choice([10**6, rng.randrange(3, 60)])) == judge_history(open_history(run))
