"""The kernel against the oracle, against lawful histories, and against planted anomalies."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linearizability.anomalies import loss
from linearizability.check import judge, judge_history
from linearizability.history.errors import HistoryError
from linearizability.history.reader import open_history
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.nonsense import nonsense, nonsense_of_one_group, well_formed
from tests.linearizability.anomalies.oracle import Oracle
from tests.linearizability.anomalies.pipeline import Pipeline
from tests.linearizability.anomalies.plants import PLANTS
from tests.linearizability.anomalies.plants_of_groups import GROUP_PLANTS
from tests.linearizability.anomalies.simulation import Simulation
from tests.linearizability.anomalies.trouble import CLUSTER_PLANTS, Trouble, nonsense_of_a_cluster

SEEDS = st.integers(0, 2**32)


def examples(count):
    return settings(
        max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )


def judged(tables, tmp_path_factory, files=1):
    """Not by `judge`: the kernel keeps its head in histories that are refused, too."""
    return judge_history(open_history(tables.write(tmp_path_factory.mktemp("run"), files)))


def as_rows(judgement):
    return {
        (a.name, str(a.verdict)): (a.count, [(e.op_ids, e.topic, e.partition, e.offset, e.value) for e in a.evidence])
        for a in judgement.anomalies
    }


def lawful(seed):
    rng = random.Random(seed)
    odd = rng.randrange(7)
    if odd > 5:
        return Trouble(rng).run(rng.randrange(1, 40))
    if odd > 3:
        return Pipeline(rng).run(rng.randrange(5, 60))
    simulation = Simulation(
        rng,
        unclean=odd == 1,
        compaction=odd == 2,
        retention=odd == 3,
        weak=rng.random() < 0.5,
        positions=rng.random() < 0.8,
        topic_id=rng.choice([None, "A"]),
    )
    return simulation.run(rng.randrange(5, 60))


@given(SEEDS)
@examples(250)
def test_kernel_says_what_the_oracle_says_of_nonsense(tmp_path_factory, seed):
    tables = nonsense(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(200)
def test_kernel_says_what_the_oracle_says_of_a_group_in_confusion(tmp_path_factory, seed):
    tables = nonsense_of_one_group(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(200)
def test_kernel_says_what_the_oracle_says_of_a_cluster_in_confusion(tmp_path_factory, seed):
    tables = nonsense_of_a_cluster(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(60)
def test_kernel_says_what_the_oracle_says_of_lawful_histories(tmp_path_factory, seed):
    tables = lawful(seed)
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(250)
def test_lawful_history_raises_nothing(tmp_path_factory, seed):
    judgement = judged(lawful(seed), tmp_path_factory)
    assert [a for a in judgement.anomalies if a.verdict is not Verdict.PERMITTED] == []
    assert judgement.verdict is Verdict.OK or judgement.reasons


@pytest.mark.parametrize("name", PLANTS)
@given(seed=SEEDS)
@examples(25)
def test_planted_anomaly_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = Simulation(rng, weak=False).run(rng.randrange(20, 60))
    tables.rows["faults"] = [fault for fault in tables.rows["faults"] if fault["kind"] not in ("wipe", "power")]
    if PLANTS[name](tables, rng):
        found = {
            a.name: a.verdict for a in judged(tables, tmp_path_factory).anomalies if a.verdict is not Verdict.PERMITTED
        }
        assert found.get(name) is (Verdict.UNKNOWN if name == "unseen" else Verdict.VIOLATION)


@pytest.mark.parametrize("name", GROUP_PLANTS)
@given(seed=SEEDS)
@examples(25)
def test_planted_anomaly_of_a_group_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = Pipeline(rng).run(rng.randrange(20, 60))
    if GROUP_PLANTS[name](tables, rng):
        found = {a.name: a.verdict for a in judged(tables, tmp_path_factory).anomalies}
        assert found.get(name) is Verdict.VIOLATION


@pytest.mark.parametrize("name", CLUSTER_PLANTS)
@given(seed=SEEDS)
@examples(25)
def test_planted_anomaly_of_a_cluster_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = Trouble(rng).run(rng.randrange(1, 40))
    if CLUSTER_PLANTS[name](tables, rng):
        found = {a.name: a.verdict for a in judged(tables, tmp_path_factory).anomalies}
        assert found.get(name) is Verdict.VIOLATION


@given(SEEDS)
@examples(40)
def test_shuffled_rows_and_other_files_change_nothing(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = nonsense(rng)
    expected = judged(tables, tmp_path_factory)
    for rows in tables.rows.values():
        rng.shuffle(rows)
    assert judged(tables, tmp_path_factory, files=3) == expected


@given(SEEDS)
@examples(40)
def test_pairs_looked_at_a_few_at_a_time_say_the_same(tmp_path_factory, seed):
    tables = nonsense(random.Random(seed))
    expected = judged(tables, tmp_path_factory)
    limit, loss._PAIRS_MAX = loss._PAIRS_MAX, 1 + seed % 3
    try:
        assert judged(tables, tmp_path_factory) == expected
    finally:
        loss._PAIRS_MAX = limit


@given(SEEDS)
@examples(60)
def test_lawful_and_mended_histories_are_not_refused(tmp_path_factory, seed):
    assert judge(lawful(seed).write(tmp_path_factory.mktemp("run")))
    assert judge(well_formed(nonsense(random.Random(seed))).write(tmp_path_factory.mktemp("run")))


def test_broken_history_is_refused_and_the_row_named(tmp_path):
    tables = Simulation(random.Random(1)).run(30)
    tables.rows["records"][7]["op_id"] = 10_000
    with pytest.raises(HistoryError, match=r"^table records, row 7 .*op_id is 10000; there is no such operation$"):
        judge(tables.write(tmp_path / "run"))
