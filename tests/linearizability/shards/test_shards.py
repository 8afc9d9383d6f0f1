"""A history judged by its shards is judged as in one piece: cut anywhere, sieved, evidence included."""

import random
import shutil
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
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
from linearizability.synthetic.plants import PLANTS as SYNTHETIC_PLANTS
from linearizability.synthetic.writing import Request, history
from tests.linearizability.anomalies.histories import Tables
from tests.linearizability.anomalies.nonsense import nonsense, nonsense_of_one_group, well_formed
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.anomalies.plants import PLANTS
from tests.linearizability.anomalies.plants_of_groups import GROUP_PLANTS
from tests.linearizability.anomalies.simulation import Simulation
from tests.linearizability.anomalies.tangles import tangle
from tests.linearizability.anomalies.trouble import CLUSTER_PLANTS, Trouble, nonsense_of_a_cluster

SEEDS = st.integers(0, 2**32)


def examples(count):
    return settings(
        max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )


def in_shards(run, part_rows):
    history = open_history(run)
    return judge_layout(history, lay_out(history, run_here, part_rows), run_here)


def anything(rng):
    make = rng.choice([nonsense, nonsense_of_one_group, nonsense_of_a_cluster, tangle])
    tables = well_formed(make(rng))
    for row in tables.rows["records"]:  # Of a record that is read with several keys, the definitions take any.
        if row["value"] is not None:
            row["key"] = "ab"[row["value"] % 2]
    return tables


def planted(rng):
    """A lawful history with a handful of anomalies."""
    kind = rng.randrange(5)
    if kind == 0:
        tables, plants = Pipeline(rng).run(rng.randrange(5, 60)), GROUP_PLANTS
    elif kind == 1:
        tables, plants = Trouble(rng).run(rng.randrange(1, 40)), CLUSTER_PLANTS
    else:
        simulation = Simulation(rng, weak=rng.random() < 0.3, unclean=kind == 2, positions=rng.random() < 0.9)
        tables, plants = simulation.run(rng.randrange(5, 60)), PLANTS
    for name in rng.sample(sorted(plants), rng.randrange(3)) if tables.rows["positions"] else ():
        plants[name](tables, rng)
    planted_reads = [row for row in tables.rows["records"] if row["seq"] >= 10_000]
    for number, row in enumerate(planted_reads):  # Several plants may add to one poll.
        row["seq"] += number
    return well_formed(tables)


@pytest.mark.parametrize("make", [anything, planted])
@given(seed=SEEDS)
@examples(30)
def test_shards_are_judged_as_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    run = make(rng).write(tmp_path_factory.mktemp("run") / "run", files=rng.randrange(1, 3))
    expected = judge_history(open_history(run))
    assert in_shards(run, rng.choice([10**6, rng.randrange(1, 12)])) == expected


def forget_ids(tables, rng):
    """Of rows of topics that have one id at most, some know it and some do not."""
    rows = [row for name in tables.rows for row in tables.rows[name] if row.get("topic") is not None]
    ids = {}
    for row in rows:
        ids.setdefault(row["topic"], set()).add(row["topic_id"])
    only = {topic: min(own - {None}, default="X") for topic, own in ids.items() if len(own - {None}) <= 1}
    knowing = rng.choice([0.02, 0.5, 0.98])
    for row in rows:
        if row["topic"] in only:
            row["topic_id"] = only[row["topic"]] if rng.random() < knowing else None


@pytest.mark.parametrize("make", [anything, planted])
@given(seed=SEEDS)
@examples(30)
def test_rows_without_a_topic_id_are_judged_with_those_that_know_it(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    tables = make(rng)
    forget_ids(tables, rng)
    run = tables.write(tmp_path_factory.mktemp("run") / "run", files=rng.randrange(1, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BATCH_ROWS", rng.choice([2, 5, 10**6]))
        assert in_shards(run, rng.choice([10**6, rng.randrange(1, 12)])) == judge_history(open_history(run))


def test_one_row_that_knows_the_topic_id_does_not_keep_a_partition_from_being_cut(tmp_path):
    def layout(name, knowing):
        tables = synthetic(random.Random(1))
        for table in tables.rows.values():
            for row in table if knowing is not None else ():
                if "topic_id" in row and row is not knowing(tables):
                    row["topic_id"] = None
        return lay_out(open_history(tables.write(tmp_path / name)), run_here, 20)

    all_know = layout("all", None)
    one_knows = layout("one", lambda tables: tables.rows["states"][0])
    assert any(shard.is_cut for shard in all_know.shards)
    assert (one_knows.places, one_knows.shards) == (all_know.places, all_know.shards)


def test_one_offset_far_from_all_others_does_not_undo_the_cutting(tmp_path):
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


def kill(run, tables, rng):
    """Make of a run on disk one that was killed: some operations are in its journal only, with their records."""
    journal = run / "history" / "_journal"
    journal.mkdir()
    begun = [row["op_id"] for row in tables.rows["operations"] if rng.random() < 0.3]
    for name in ("operations", "records"):
        path = run / "history" / f"{name}.parquet"
        table = pq.read_table(path) if path.exists() else SCHEMAS[name].empty_table()
        of_begun = pc.is_in(table["op_id"], value_set=pa.array(begun, pa.int64()))
        pq.write_table(table.filter(of_begun), journal / f"{name}-000000.parquet")
        pq.write_table(table.filter(pc.invert(of_begun)), path)


@pytest.mark.parametrize("make", [anything, planted])
@given(seed=SEEDS)
@examples(20)
def test_killed_run_is_judged_by_its_shards_as_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    tables = make(rng)
    run = tables.write(tmp_path_factory.mktemp("run") / "run")
    kill(run, tables, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "LARGE_ROWS", 0)
        patch.setattr(check, "Processes", lambda: nullcontext(run_here))
        patch.setattr(check, "judge_history", lambda _: pytest.fail("read into memory"))
        patch.setattr(laying_out, "PART_ROWS", rng.choice([10**6, rng.randrange(1, 12)]))
        judgement = check.judge(run)
    assert judgement == judge_history(open_history(run))
    assert not list((run / "history").glob("_shards*"))


@pytest.mark.parametrize("make", [anything, planted])
@given(seed=SEEDS)
@examples(20)
def test_history_laid_out_while_it_is_written_is_judged_as_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("run")
    whole = open_history(make(rng).write(folder / "whole"))
    layout = LayoutWriter(folder / "run", rng.choice([1, 10**6]))
    shutil.copytree(folder / "whole", folder / "run", ignore=lambda *_: [f"{name}.parquet" for name in SCHEMAS])
    chunk_of = {op_id: rng.randrange(3) for op_id in whole.table("operations")["op_id"].to_pylist()}
    for number in range(3):
        chunk = {}
        for name in SCHEMAS:
            table = whole.table(name)
            of = [chunk_of[i] for i in table["op_id"].to_pylist()] if "op_id" in SCHEMAS[name].names else None
            own = table.filter(pa.array([own == number for own in of], pa.bool_())) if of is not None else table
            if own.num_rows and (of is not None or number == 2):
                chunk[name] = own
                (folder / "run" / "history" / name).mkdir(exist_ok=True)
                pq.write_table(own, folder / "run" / "history" / name / f"{number}.parquet")
        layout.add(chunk)
    history = open_history(folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laying_out, "PART_ROWS", rng.choice([10**6, rng.randrange(1, 12)]))
        made = layout.finish(history, run_here)
    layout = current_layout(history)
    assert made == (layout is not None)
    expected = judge_history(history)
    assert judge_layout(history, layout or lay_out(history, run_here), run_here) == expected


def synthetic(rng):
    """Lawful traffic, as rows."""
    tables = Tables(topics={"orders": {"replication.factor": "3", "min.insync.replicas": "2"}})
    plants = [name for name in rng.sample(sorted(SYNTHETIC_PLANTS), rng.randrange(3)) if not name.startswith("cycle")]
    for part in history(Request(rng.randrange(60, 240), rng.randrange(1, 3), 0.0, plants, rng.randrange(2**32))):
        for name, table in part.items():
            tables.rows[name] += table.to_pylist()
    return tables


def _removed(rng, tables, row, other):
    if row["direction"] == "read":
        tables.rows["records"].remove(row)


def _moved(rng, tables, row, other):
    if row["offset"] is not None:
        row["offset"] = max(0, row["offset"] + rng.choice([-1, 1, 3]))


def _another_value(rng, tables, row, other):
    if row["direction"] == "read":
        row["value"] = other["value"]


def _read_again(rng, tables, row, other):
    if row["direction"] == "read":
        again = {**row, "seq": 10_000 + len(tables.rows["records"]), "offset": other["offset"]}
        tables.rows["records"].append(again)


def _of(tables, row):
    return next(own for own in tables.rows["operations"] if own["op_id"] == row["op_id"])


def _other_position(rng, tables, row, other):
    rng.choice(tables.rows["positions"])[rng.choice(["before", "after"])] += rng.choice([0, 1, 2])


def _other_end(rng, tables, row, other):
    state = rng.choice(tables.rows["states"])
    state["high_watermark"] = rng.randrange((state["high_watermark"] or 0) + 1)


LONG_NS = [1, 10**6, 10**7, 10**9]
CHANGES = [
    _removed,
    _moved,
    _another_value,
    _read_again,
    _other_position,
    _other_end,
    lambda rng, tables, row, other: row.update(offset=None),
    lambda rng, tables, row, other: row.update(offset=10**15),
    lambda rng, tables, row, other: row.update(leader_epoch=rng.randrange(3)),
    lambda rng, tables, row, other: row.update(intact=False),
    lambda rng, tables, row, other: row.update(value=None, key="k"),
    lambda rng, tables, row, other: _of(tables, row).update(outcome=rng.choice(["info", "fail"])),
    lambda rng, tables, row, other: _of(tables, row).update(process=_of(tables, other)["process"]),
    lambda rng, tables, row, other: _of(tables, row).update(
        complete_ns=_of(tables, row)["complete_ns"] + rng.choice(LONG_NS)
    ),
    lambda rng, tables, row, other: _of(tables, row).update(
        invoke_ns=_of(tables, row)["invoke_ns"] - rng.choice(LONG_NS)
    ),
]
"""What a broken broker, client or network would do to one row, another one at hand."""


def change(tables, rng):
    """Change one row."""
    records = tables.rows["records"]
    rng.choice(CHANGES)(rng, tables, rng.choice(records), rng.choice(records))


@given(seed=SEEDS)
@examples(60)
def test_what_the_sieve_leaves_out_changes_nothing(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = synthetic(rng)
    for _ in range(rng.randrange(6)):
        change(tables, rng)
    run = tables.write(tmp_path_factory.mktemp("run") / "run")
    with pytest.MonkeyPatch.context() as patch:
        # Not every history here keeps the rules; the judgement is to be the same all the same.
        patch.setattr(laying_out, "_validate", lambda *_: None)
        patch.setattr(spilling, "check_rows", lambda *_: None)
        assert in_shards(run, rng.choice([10**6, rng.randrange(3, 60)])) == judge_history(open_history(run))
