"""A history judged by its shards is judged as in one piece: cut anywhere, sieved, evidence included."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.shards import laying_out
from linearizability.shards.engine import judge_layout
from linearizability.shards.laying_out import lay_out
from linearizability.shards.running import run_here
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
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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
    for name in rng.sample(sorted(plants), rng.randrange(3)):
        plants[name](tables, rng)
    return well_formed(tables)


@pytest.mark.parametrize("make", [anything, planted])
@given(seed=SEEDS)
@examples(30)
def test_shards_are_judged_as_the_whole(tmp_path_factory, make, seed):
    rng = random.Random(seed)
    run = make(rng).write(tmp_path_factory.mktemp("run") / "run", files=rng.randrange(1, 3))
    expected = judge_history(open_history(run))
    assert in_shards(run, rng.choice([10**6, rng.randrange(1, 12)])) == expected


def synthetic(rng):
    """Lawful traffic, as rows."""
    tables = Tables(topics={"orders": {"replication.factor": "3", "min.insync.replicas": "2"}})
    plants = [name for name in rng.sample(sorted(SYNTHETIC_PLANTS), rng.randrange(3)) if not name.startswith("cycle")]
    for part in history(Request(rng.randrange(60, 240), rng.randrange(1, 3), 0.0, plants, rng.randrange(2**32))):
        for name, table in part.items():
            tables.rows[name] += table.to_pylist()
    return tables


def change(tables, rng):
    """Change one cell or row: what a broken broker, client or network would do."""
    records, operations = tables.rows["records"], {row["op_id"]: row for row in tables.rows["operations"]}
    row, other = rng.choice(records), rng.choice(records)
    operation = operations[row["op_id"]]
    match rng.randrange(14):
        case 0 if row["direction"] == "read":
            records.remove(row)
        case 1 if row["offset"] is not None:
            row["offset"] = max(0, row["offset"] + rng.choice([-1, 1, 3]))
        case 2 if row["direction"] == "read":
            row["value"] = other["value"]
        case 3:
            row["offset"] = None
        case 4:
            operation["outcome"] = rng.choice(["info", "fail"])
        case 5:
            operation["complete_ns"] += rng.choice([1, 10**6, 10**7, 10**9])
        case 6:
            operation["invoke_ns"] -= rng.choice([1, 10**6, 10**7, 10**9])
        case 7:
            operation["process"] = operations[other["op_id"]]["process"]
        case 8:
            row["leader_epoch"] = rng.randrange(3)
        case 9:
            row["intact"] = False
        case 10:
            row["value"], row["key"] = None, "k"
        case 11:
            position = rng.choice(tables.rows["positions"])
            position[rng.choice(["before", "after"])] += rng.choice([0, 1, 2])
        case 12 if row["direction"] == "read":
            records.append({**row, "seq": 10_000 + len(records), "offset": other["offset"]})
        case 13:
            state = rng.choice(tables.rows["states"])
            state["high_watermark"] = rng.randrange(state["high_watermark"] + 1)


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
        assert in_shards(run, rng.choice([10**6, rng.randrange(3, 60)])) == judge_history(open_history(run))
