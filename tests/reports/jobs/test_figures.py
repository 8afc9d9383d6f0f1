"""Comparison of runs: changes of figures and settings."""

import pytest

from linearizability.history.run import RunInfo
from linearizability.judgement import Anomaly, Judgement, Verdict
from reports.jobs.comparison import FigureChange, change_rows, classify_change, trend_rows
from reports.jobs.figures import FIGURES, Better


@pytest.mark.parametrize(
    ("value", "before", "better", "is_count", "wanted"),
    [
        (5.0, 5.0, Better.LOW, True, FigureChange.SAME),
        (6.0, 5.0, Better.LOW, True, FigureChange.WORSE),
        (4.0, 5.0, Better.LOW, True, FigureChange.BETTER),
        (6.0, 5.0, Better.HIGH, True, FigureChange.BETTER),
        (6.0, 5.0, Better.NEITHER, True, FigureChange.DIFFERENT),
        (1.0, 0.0, Better.LOW, True, FigureChange.WORSE),
        (109.0, 100.0, Better.LOW, False, FigureChange.SAME),
        (111.0, 100.0, Better.LOW, False, FigureChange.WORSE),
        (89.0, 100.0, Better.HIGH, False, FigureChange.WORSE),
        (0.1, 0.0, Better.LOW, False, FigureChange.WORSE),
        (None, 1.0, Better.LOW, False, FigureChange.DIFFERENT),
        (None, None, Better.LOW, False, FigureChange.SAME),
    ],
)
def test_change_of_a_figure(value, before, better, is_count, wanted):
    assert classify_change(value, before, better, is_count=is_count) is wanted


def run_of(run_id, **figures):
    return {"run_id": run_id, **dict.fromkeys((figure.name for figure in FIGURES), 1.0), **figures}


def test_trend_has_every_figure_and_anomaly_of_every_run():
    found = Judgement(1, 1, (Anomaly("lost-write", Verdict.VIOLATION, 3, ()), Anomaly("x", Verdict.PERMITTED, 2, ())))
    rows = list(trend_rows([run_of("a"), run_of("b", lost=4.0)], [Judgement(1, 1, ()), found]))
    trend = {(row["run_id"], row["figure"]): (row["value"], row["before"], row["change"], row["moved"]) for row in rows}
    assert trend["a", "lost"] == (1.0, None, None, "first")
    assert trend["b", "lost"] == (4.0, 1.0, 3.0, "worse")
    assert trend["b", "lost-write (violation)"] == (3.0, 0.0, None, "worse")
    assert trend["b", "x (permitted)"] == (2.0, 0.0, None, "different")
    assert len(rows) == 2 * (len(FIGURES) + 2)


def test_settings_are_compared_without_ids_of_clients():
    before = RunInfo(
        "a",
        target="reference",
        cluster={"min.insync.replicas": "2"},
        topics={"t": {"x": "1"}},
        clients={1: {"acks": "1", "group.id": "g1"}, 2: {"acks": "all"}},
    )
    after = RunInfo(
        "b",
        target="reference",
        cluster={"min.insync.replicas": "1"},
        clients={7: {"acks": "all", "group.id": "g7", "bootstrap.servers": "x"}},
    )
    rows = [(row["setting"], row["before"], row["after"]) for row in change_rows([("a", before), ("b", after)])]
    assert rows == [
        ("clients.acks", "1, all", "all"),
        ("cluster.min.insync.replicas", "2", "1"),
        ("topics.t.x", "1", None),
    ]
