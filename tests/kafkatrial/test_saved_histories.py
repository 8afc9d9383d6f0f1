"""Histories in a directory, and their combined judgement."""

import pytest

from kafkatrial.errors import UsageError
from kafkatrial.saved_histories import combine, histories_in, judge_each
from linearizability.history.errors import HistoryError
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict


def evidence(offset):
    return Evidence((1,), "t", 0, offset, None, "gone")


def judgement(*anomalies, reasons=()):
    return Judgement(10, 20, anomalies, reasons)


def test_a_history_directory_is_judged_directly(tmp_path):
    (tmp_path / "run.json").touch()
    (tmp_path / "results.json").touch()
    assert histories_in(tmp_path) == {"": tmp_path}


def test_a_run_directory_contains_several_histories(tmp_path):
    (tmp_path / "results.json").touch()
    for name in ("b/x", "a/y"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").touch()
    assert histories_in(tmp_path) == {"a/y": tmp_path / "a/y", "b/x": tmp_path / "b/x"}


@pytest.mark.parametrize("name", ["results.json", "summary.json"])
def test_a_run_that_recorded_no_history_is_named_as_such(tmp_path, name):
    (tmp_path / name).write_text('{"complete": true}')
    with pytest.raises(UsageError, match=r"nothing to judge: the run recorded no history$"):
        histories_in(tmp_path)


@pytest.mark.parametrize("kind", ["missing", "empty", "unknown", "file"])
def test_other_paths_are_rejected(tmp_path, kind):
    path = tmp_path / kind
    if kind == "file":
        path.touch()
    elif kind != "missing":
        path.mkdir()
    if kind == "unknown":  # the directory contains a run, but is no run directory itself
        (path / "inner").mkdir()
        (path / "inner" / "run.json").touch()
    with pytest.raises(UsageError, match=str(path)):
        histories_in(path)


def test_a_history_that_cannot_be_judged_is_named(tmp_path, monkeypatch):
    def judge(path):
        if path.name == "y":
            raise HistoryError("table records, row 7: offset is -1")
        return judgement()

    monkeypatch.setattr("linearizability.check.judge", judge)
    assert set(judge_each({"a/x": tmp_path / "a/x"})) == {"a/x"}
    with pytest.raises(HistoryError, match=rf"^{tmp_path}/a/y: table records, row 7"):
        judge_each({"a/x": tmp_path / "a/x", "y": tmp_path / "a/y"})
    with pytest.raises(HistoryError, match=r"^table records, row 7"):
        judge_each({"": tmp_path / "y"})


def test_a_single_judgement_is_unchanged():
    only = judgement(Anomaly("lost-write", Verdict.VIOLATION, 1, (evidence(3),)))
    assert combine({"": only}) is only


def test_several_judgements_are_combined():
    lost = Anomaly("lost-write", Verdict.VIOLATION, 12, tuple(evidence(n) for n in range(8)))
    permitted = Anomaly("lost-write", Verdict.PERMITTED, 1, ())
    both = combine({"a": judgement(lost), "b": judgement(lost, permitted), "c": judgement(reasons=("nothing read",))})
    assert (both.operations, both.records, both.verdict) == (30, 60, Verdict.VIOLATION)
    assert [(found.verdict, found.count, len(found.evidence)) for found in both.anomalies] == [
        (Verdict.VIOLATION, 24, 10),
        (Verdict.PERMITTED, 1, 0),
    ]
    assert both.anomalies[0].evidence[0].text == "a: gone"
    assert both.reasons == ("c: nothing read",)
