"""Nightly: the same checks as in `test_definitions` and `test_cycles`, for tens of thousands of histories in memory.

    pytest tests/linearizability/anomalies/test_many_histories.py -m nightly [-k valid]

A failure names its seed.
"""

import random
from functools import partial
from pathlib import Path

import pytest

from linearizability.check import judge_history
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.arbitrary_histories import arbitrary_group_history, arbitrary_history
from tests.linearizability.anomalies.faulty_cluster import (
    PLANTED_CLUSTER_ANOMALIES,
    FaultyCluster,
    arbitrary_cluster_history,
)
from tests.linearizability.anomalies.interleavings import PLANTED_CYCLES
from tests.linearizability.anomalies.oracle import Oracle
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.anomalies.planted_anomalies import PLANTED_ANOMALIES
from tests.linearizability.anomalies.planted_group_anomalies import PLANTED_GROUP_ANOMALIES
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition
from tests.linearizability.anomalies.test_cycles import arbitrary_cyclic_history
from tests.linearizability.anomalies.test_definitions import as_rows, valid_history
from tests.linearizability.many import HOURS_S, failing

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(HOURS_S)]

KINDS = {
    "any": arbitrary_history,
    "one group": arbitrary_group_history,
    "a cluster": arbitrary_cluster_history,
    "cycles": arbitrary_cyclic_history,
}
ORACLE_SEEDS = 50_000
"""The number of seeds for each of KINDS."""
VALID_SEEDS = 10_000
PLANTED_SEEDS = 400
"""The number of seeds for each planted anomaly."""


def judged_in_memory(tables):
    return judge_history(tables.in_memory(Path("made-up")))


def difference_from_the_oracle(kind, seed):
    """Return a message if the judgement differs from that of the oracle; otherwise an empty text."""
    tables = KINDS[kind](random.Random(seed))
    found, expected = as_rows(judged_in_memory(tables)), Oracle(tables.run, tables.rows).judgement()
    return "" if found == expected else f"{kind}, seed {seed}: {found} instead of {expected}"


def false_alarm(seed):
    """Return a message if a valid history has an anomaly that is not permitted; otherwise an empty text."""
    judgement = judged_in_memory(valid_history(seed))
    found = [anomaly for anomaly in judgement.anomalies if anomaly.verdict is not Verdict.PERMITTED]
    is_ok = not found and (judgement.verdict is Verdict.OK or judgement.reasons)
    return "" if is_ok else f"seed {seed}: {judgement}"


@pytest.mark.parametrize("kind", KINDS)
def test_judgement_equals_the_oracle(kind):
    assert not failing(partial(difference_from_the_oracle, kind), range(ORACLE_SEEDS))


def test_valid_histories_have_only_permitted_anomalies():
    assert not failing(false_alarm, range(VALID_SEEDS))


def partition_without_lost_content(rng):
    """Return a valid history without faults that may lose content."""
    tables = SimulatedPartition(rng, weak=False).run(rng.randrange(20, 60))
    tables.rows["faults"] = [fault for fault in tables.rows["faults"] if fault["kind"] not in ("wipe", "power")]
    return tables


SOURCES = (
    (partition_without_lost_content, {**PLANTED_ANOMALIES, **PLANTED_CYCLES}),
    (lambda rng: Pipeline(rng).run(rng.randrange(20, 60)), PLANTED_GROUP_ANOMALIES),
    (lambda rng: FaultyCluster(rng).run(rng.randrange(1, 40)), PLANTED_CLUSTER_ANOMALIES),
)


@pytest.mark.parametrize(
    ("name", "make", "plant"), [(name, make, plant) for make, plants in SOURCES for name, plant in plants.items()]
)
def test_planted_anomaly_is_found_by_name(name, make, plant):
    planted = 0
    for seed in range(PLANTED_SEEDS):
        rng = random.Random(seed)
        tables = make(rng)
        if plant(tables, rng):
            planted += 1
            found = {(anomaly.name, anomaly.verdict) for anomaly in judged_in_memory(tables).anomalies}
            permitted = (name, Verdict.PERMITTED) in found and name in PLANTED_CYCLES
            assert permitted or found & {(name, Verdict.VIOLATION), (name, Verdict.UNKNOWN)}, f"seed {seed}"
    assert planted
