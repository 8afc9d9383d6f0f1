"""Synthetic histories: valid except for planted anomalies, equal for equal seeds, and generated in bounded chunks."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linearizability.anomalies.catalogue import DEFINITIONS
from linearizability.check import judge
from linearizability.history.reader import HistoryError, open_history
from linearizability.judgement import Verdict
from linearizability.synthetic import writing
from linearizability.synthetic.planted_anomalies import PLANTED_ANOMALIES
from linearizability.synthetic.writing import Request, history, synthesize


def synthesized(run, *request):
    """Write a history; return its folder, the number of records, and the numbers that were reported as progress."""
    progress = []
    return run, synthesize(run, Request(*request), progress.append), progress


def test_every_anomaly_of_the_catalogue_can_be_planted():
    assert set(PLANTED_ANOMALIES) == {anomaly.name for anomaly in DEFINITIONS}


@pytest.mark.parametrize("name", PLANTED_ANOMALIES)
def test_planted_anomaly_is_found_by_name(tmp_path, monkeypatch, name):
    monkeypatch.setattr(writing, "CHUNK_STEPS", 100)
    run, _, _ = synthesized(tmp_path / "run", 1200, 3, 0.0, [name])
    found = {(anomaly.name, anomaly.count) for anomaly in judge(run).anomalies}
    assert name in {name for name, _ in found}


@given(
    st.integers(1, 3000), st.integers(1, 50), st.floats(0, 1), st.integers(0, 2**32), st.sampled_from([1, 7, 50_000])
)
@settings(max_examples=25)
def test_history_without_planted_anomalies_is_valid(tmp_path_factory, records, partitions, skew, seed, steps):
    run = tmp_path_factory.mktemp("run") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "CHUNK_STEPS", max(steps, records // 20))
        synthesized(run, records, partitions, skew, [], seed)
    judgement = judge(run)
    assert (judgement.verdict, judgement.anomalies) == (Verdict.OK, ())


def test_each_planted_anomaly_is_counted_once(tmp_path):
    planted = ["corrupt-record", "duplicate", "corrupt-record", "unseen"]
    run, records, progress = synthesized(tmp_path / "run", 4000, 5, 0.5, planted, 7)
    judgement = judge(run)
    assert {a.name: a.count for a in judgement.anomalies} == {"corrupt-record": 2, "duplicate": 1, "unseen": 1}
    assert records == judgement.records == progress[-1]


def test_histories_are_equal_only_for_equal_seeds():
    request = Request(2000, 4, 0.3, ["lost-write", "poll-skip"], 3)
    one, again, other = (list(history(r)) for r in (request, request, Request(2000, 4, 0.3, ["lost-write"], 4)))
    assert all(a == b for a, b in zip(one, again, strict=True))
    assert one[0] != other[0]


def test_skew_is_the_share_of_the_first_partition(tmp_path):
    run, _, _ = synthesized(tmp_path / "run", 40_000, 20, 0.4)
    partition = open_history(run).table("records", ["partition"])["partition"].to_pylist()
    assert 0.35 < partition.count(0) / len(partition) < 0.45


def test_chunks_do_not_grow_with_the_history():
    chunks = itertools.islice(history(Request(10**9, 1000)), 2)
    # The largest table of each chunk has 900 000 to 999 999 rows.
    assert {max(table.num_rows for table in tables.values()) // 100_000 for tables in chunks} == {9}


def test_existing_run_is_not_overwritten(tmp_path):
    run, _, _ = synthesized(tmp_path / "run", 20, 1)
    with pytest.raises(HistoryError, match="already contains a run"):
        synthesize(run, Request(20, 1), lambda _: None)


def test_interrupted_run_is_not_complete(tmp_path):
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesize(tmp_path / "run", Request(20, 1), interrupted)
    assert not open_history(tmp_path / "run").run.complete
