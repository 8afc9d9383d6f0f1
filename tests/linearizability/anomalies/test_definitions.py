"""Definitions of the anomalies: the oracle judges the same histories equally, and planted anomalies are found."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linearizability.anomalies import loss
from linearizability.check import judge, judge_history
from linearizability.history.errors import HistoryError
from linearizability.history.reader import open_history
from linearizability.judgement import Verdict
from tests.linearizability.anomalies.arbitrary_histories import arbitrary_group_history, arbitrary_history, well_formed
from tests.linearizability.anomalies.faulty_cluster import (
    PLANTED_CLUSTER_ANOMALIES,
    FaultyCluster,
    arbitrary_cluster_history,
)
from tests.linearizability.anomalies.histories import TOPIC, Tables
from tests.linearizability.anomalies.oracle import Oracle
from tests.linearizability.anomalies.pipeline import SOURCE, Pipeline
from tests.linearizability.anomalies.planted_anomalies import PLANTED_ANOMALIES
from tests.linearizability.anomalies.planted_group_anomalies import PLANTED_GROUP_ANOMALIES
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition
from tests.linearizability.many import examples

pytestmark = pytest.mark.sampled(4)

SEEDS = st.integers(0, 2**32)


def judged(tables, tmp_path_factory, files=1):
    """Judge a history without validating it, because `judge` rejects arbitrary histories that break the format."""
    return judge_history(open_history(tables.write(tmp_path_factory.mktemp("run"), files)))


def as_rows(judgement):
    """Return the anomalies of a judgement in the form of `Oracle.judgement`."""
    return {
        (a.name, str(a.verdict)): (a.count, [(e.op_ids, e.topic, e.partition, e.offset, e.value) for e in a.evidence])
        for a in judgement.anomalies
    }


def valid_history(seed):
    rng = random.Random(seed)
    kind = rng.randrange(7)
    if kind > 5:
        return FaultyCluster(rng).run(rng.randrange(1, 40))
    if kind > 3:
        return Pipeline(rng).run(rng.randrange(5, 60))
    simulation = SimulatedPartition(
        rng,
        unclean=kind == 1,
        compaction=kind == 2,
        retention=kind == 3,
        weak=rng.random() < 0.5,
        positions=rng.random() < 0.8,
        topic_id=rng.choice([None, "A"]),
    )
    return simulation.run(rng.randrange(5, 60))


@given(SEEDS)
@example(35_002)  # two records of one operation with the same offset
@examples(250)
def test_judgement_of_arbitrary_histories_equals_the_oracle(tmp_path_factory, seed):
    tables = arbitrary_history(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(200)
def test_judgement_of_arbitrary_groups_equals_the_oracle(tmp_path_factory, seed):
    tables = arbitrary_group_history(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(200)
def test_judgement_of_arbitrary_clusters_equals_the_oracle(tmp_path_factory, seed):
    tables = arbitrary_cluster_history(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(60)
def test_judgement_of_valid_histories_equals_the_oracle(tmp_path_factory, seed):
    tables = valid_history(seed)
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@given(SEEDS)
@examples(250)
def test_valid_history_has_only_permitted_anomalies(tmp_path_factory, seed):
    judgement = judged(valid_history(seed), tmp_path_factory)
    assert [a for a in judgement.anomalies if a.verdict is not Verdict.PERMITTED] == []
    assert judgement.verdict is Verdict.OK or judgement.reasons


@pytest.mark.parametrize("name", PLANTED_ANOMALIES)
@given(seed=SEEDS)
@examples(25)
def test_planted_anomaly_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = SimulatedPartition(rng, weak=False).run(rng.randrange(20, 60))
    tables.rows["faults"] = [fault for fault in tables.rows["faults"] if fault["kind"] not in ("wipe", "power")]
    if PLANTED_ANOMALIES[name](tables, rng):
        found = {
            a.name: a.verdict for a in judged(tables, tmp_path_factory).anomalies if a.verdict is not Verdict.PERMITTED
        }
        assert found.get(name) is (Verdict.UNKNOWN if name == "unseen" else Verdict.VIOLATION)


@pytest.mark.parametrize("name", PLANTED_GROUP_ANOMALIES)
@given(seed=SEEDS)
@examples(25)
def test_planted_anomaly_of_a_group_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = Pipeline(rng).run(rng.randrange(20, 60))
    if PLANTED_GROUP_ANOMALIES[name](tables, rng):
        found = {a.name: a.verdict for a in judged(tables, tmp_path_factory).anomalies}
        assert found.get(name) is Verdict.VIOLATION


@given(seed=SEEDS)
@examples(25)
def test_commit_of_unknown_offset_may_have_moved_the_group_back(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = Pipeline(rng).run(rng.randrange(20, 60))
    if PLANTED_GROUP_ANOMALIES["reprocessed-input"](tables, rng):
        now = max(row["complete_ns"] for row in tables.rows["operations"]) + 10
        op = tables.op(50, "commit_offsets", now, now + 1, group="g")
        tables.add("offsets", op_id=op, group="g", topic=SOURCE, partition=0, direction="commit")
        assert judged(tables, tmp_path_factory).verdict is not Verdict.VIOLATION


@pytest.mark.parametrize("name", PLANTED_CLUSTER_ANOMALIES)
@given(seed=SEEDS)
@examples(25)
def test_planted_anomaly_of_a_cluster_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = FaultyCluster(rng).run(rng.randrange(1, 40))
    if PLANTED_CLUSTER_ANOMALIES[name](tables, rng):
        found = {a.name: a.verdict for a in judged(tables, tmp_path_factory).anomalies}
        assert found.get(name) is Verdict.VIOLATION


@given(SEEDS)
@examples(40)
def test_order_of_rows_and_number_of_files_do_not_matter(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = arbitrary_history(rng)
    expected = judged(tables, tmp_path_factory)
    for rows in tables.rows.values():
        rng.shuffle(rows)
    assert judged(tables, tmp_path_factory, files=3) == expected


@given(SEEDS)
@examples(40)
def test_judgement_does_not_depend_on_the_size_of_pair_batches(tmp_path_factory, seed):
    tables = arbitrary_history(random.Random(seed))
    expected = judged(tables, tmp_path_factory)
    limit, loss._PAIRS_MAX = loss._PAIRS_MAX, 1 + seed % 3
    try:
        assert judged(tables, tmp_path_factory) == expected
    finally:
        loss._PAIRS_MAX = limit


@given(SEEDS)
@examples(60)
def test_valid_and_repaired_histories_are_accepted(tmp_path_factory, seed):
    assert judge(valid_history(seed).write(tmp_path_factory.mktemp("run")))
    assert judge(well_formed(arbitrary_history(random.Random(seed))).write(tmp_path_factory.mktemp("run")))


def test_evidence_of_a_corrupt_record_is_one_read(tmp_path_factory):
    tables = Tables(topics={TOPIC: {}})
    tables.record(tables.op(1, "produce", 10, 11), 0, "send", TOPIC, 0, 0, 7)
    for offset in (None, 3, 0, 0):
        now = 20 + len(tables.rows["operations"])
        tables.record(tables.op(2, "poll", now, now), 0, "read", TOPIC, 0, offset, 7, intact=False)
    found = as_rows(judged(tables, tmp_path_factory))
    assert found["corrupt-record", "violation"] == (1, [((3,), TOPIC, 0, 0, 7)])
    assert found == Oracle(tables.run, tables.rows).judgement()


def test_rejection_of_an_invalid_history_names_the_row(tmp_path):
    tables = SimulatedPartition(random.Random(1)).run(30)
    tables.rows["records"][7]["op_id"] = 10_000
    with pytest.raises(HistoryError, match=r"^table records, row 7 .*op_id is 10000; there is no such operation$"):
        judge(tables.write(tmp_path / "run"))
