"""A history judged by its shards is judged as in one piece: cut anywhere, sieved, evidence included."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.shards.engine import judge_layout
from linearizability.shards.laying_out import lay_out
from linearizability.shards.running import run_here
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
