"""At night: the kernel against the oracle, lawful histories and planted anomalies, in very many histories.

    pytest tests/linearizability/anomalies/test_many_histories.py -m nightly [-k lawful]

The same is asked of some hundred in `test_kernel` and `test_cycles`. Histories are judged in memory.
"""

import random
from functools import partial
from pathlib import Path

import pytest

from linearizability.check import judge_history
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.nonsense import nonsense, nonsense_of_one_group
from tests.linearizability.anomalies.oracle import Oracle
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.anomalies.plants import PLANTS
from tests.linearizability.anomalies.plants_of_groups import GROUP_PLANTS
from tests.linearizability.anomalies.simulation import Simulation
from tests.linearizability.anomalies.test_cycles import any_history
from tests.linearizability.anomalies.test_kernel import as_rows, lawful
from tests.linearizability.anomalies.trouble import CLUSTER_PLANTS, Trouble, nonsense_of_a_cluster
from tests.linearizability.anomalies.weaves import CYCLE_PLANTS
from tests.linearizability.many import HOURS_S, failing

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(HOURS_S)]

KINDS = {
    "anything": nonsense,
    "one group": nonsense_of_one_group,
    "a cluster": nonsense_of_a_cluster,
    "cycles": any_history,
}
ORACLE_SEEDS = 50_000
"""Of each kind."""
LAWFUL_SEEDS = 10_000
PLANT_SEEDS = 400
"""Of each anomaly: more than ten thousand in all."""


def whole_of(tables):
    return judge_history(tables.in_memory(Path("made-up")))


def unlike_the_oracle(kind, seed):
    """How the kernel and the oracle judge differently, empty if they do not."""
    tables = KINDS[kind](random.Random(seed))
    found, expected = as_rows(whole_of(tables)), Oracle(tables.run, tables.rows).judgement()
    return "" if found == expected else f"{kind}, seed {seed}: {found} instead of {expected}"


def raised_by_lawful(seed):
    judgement = whole_of(lawful(seed))
    found = [anomaly for anomaly in judgement.anomalies if anomaly.verdict is not Verdict.PERMITTED]
    is_silent = not found and (judgement.verdict is Verdict.OK or judgement.reasons)
    return "" if is_silent else f"seed {seed}: {judgement}"


@pytest.mark.parametrize("kind", KINDS)
def test_kernel_says_what_the_oracle_says(kind):
    assert not failing(partial(unlike_the_oracle, kind), range(ORACLE_SEEDS))


def test_lawful_histories_raise_nothing():
    assert not failing(raised_by_lawful, range(LAWFUL_SEEDS))


def strong_log(rng):
    tables = Simulation(rng, weak=False).run(rng.randrange(20, 60))
    tables.rows["faults"] = [fault for fault in tables.rows["faults"] if fault["kind"] not in ("wipe", "power")]
    return tables


SOILS = (
    (strong_log, {**PLANTS, **CYCLE_PLANTS}),
    (lambda rng: Pipeline(rng).run(rng.randrange(20, 60)), GROUP_PLANTS),
    (lambda rng: Trouble(rng).run(rng.randrange(1, 40)), CLUSTER_PLANTS),
)


@pytest.mark.parametrize(
    ("name", "soil", "plant"), [(name, soil, plant) for soil, plants in SOILS for name, plant in plants.items()]
)
def test_planted_anomaly_is_found_by_name(name, soil, plant):
    planted = 0
    for seed in range(PLANT_SEEDS):
        rng = random.Random(seed)
        tables = soil(rng)
        if plant(tables, rng):
            planted += 1
            found = {(anomaly.name, anomaly.verdict) for anomaly in whole_of(tables).anomalies}
            permitted = (name, Verdict.PERMITTED) in found and name in CYCLE_PLANTS
            assert permitted or found & {(name, Verdict.VIOLATION), (name, Verdict.UNKNOWN)}, f"seed {seed}"
    assert planted
