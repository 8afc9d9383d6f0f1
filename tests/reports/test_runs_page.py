"""Page and terminal summary of a report: bounded in size, with all foreign text escaped; errors of the local engine."""

from dataclasses import replace

import pytest

from linearizability.check import judge
from linearizability.judgement import Anomaly, Judgement, Verdict
from reports.jobs.report import make_report
from reports.local.engine import LocalEngineError, local_engine
from reports.runs_page import ROWS_MAX, runs_page
from reports.runs_terminal import COLUMNS_MAX, render_report
from reports.terminal import as_text
from tests.linearizability.anomalies.histories import Tables

SECOND = 1_000_000_000
HOSTILE = '<script>alert(1)</script>[red]"&\x1b[2J'


def report_of(tmp_path, *histories):
    dirs = [made.write(tmp_path / f"run-{number}") for number, made in enumerate(histories)]
    scratch = tmp_path / "scratch"
    return make_report(
        dict.fromkeys(dirs, ""), scratch, judge, lambda: local_engine(scratch / "duckdb"), lambda step: None
    )


def test_foreign_text_is_escaped(tmp_path):
    tables = Tables(run_id=HOSTILE, seed=2**90, target=HOSTILE, topics={HOSTILE: {"x": HOSTILE}})
    op = tables.op(1, "produce", 0, SECOND, acks=-1, error=HOSTILE)
    tables.record(op, 0, "send", HOSTILE, 0, 0, 1, key=HOSTILE)
    tables.op(2, HOSTILE, 0, 5 * SECOND, "info", error=HOSTILE)
    tables.add("faults", fault_id=1, kind=HOSTILE, target=HOSTILE, argument=HOSTILE, inject_ns=0, heal_ns=SECOND)
    tables.add("states", asked_ns=0, answered_ns=1, source="metadata", topic=HOSTILE, partition=0, leader=1, isr=[1])
    other = Tables(run_id="other")
    other.op(1, "produce", 0, SECOND, acks=-1)
    report = report_of(tmp_path, tables, other)
    page = runs_page(report)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[red]&#34;&amp;\\x1b[2J" in page
    shown = as_text(render_report(report, tmp_path), width=400)
    assert "\x1b" not in shown
    assert "[red]" in shown


def test_node_0_can_be_a_leader(tmp_path):
    tables = Tables(run_id="zero")
    tables.op(0, "produce", 0, 5 * SECOND, "ok", acks=-1)
    for begin, leader in ((0, 0), (2 * SECOND, None)):
        state = {"topic": "t", "partition": 0, "leader": leader, "leader_epoch": 1 + begin, "isr": [0, 1]}
        tables.add("states", asked_ns=begin, answered_ns=begin + 1, source="metadata", **state)
    page = runs_page(report_of(tmp_path, tables))
    assert "leader 0" in page


def test_page_of_a_long_run_is_small(tmp_path):
    tables = Tables(run_id="long")
    for number in range(4000):
        begin = number * 20 * SECOND
        op = tables.op(number % 40, "produce", begin, begin + SECOND, "ok" if number % 5 else "info", acks=-1)
        tables.record(op, 0, "send", "t", number % 50, number // 50, number, key=f"k{number % 300}")
        if number % 3 == 0:
            kind = ("kill", "cut", "pause", "delay")[number % 4]
            heal = begin + 50 * SECOND
            tables.add("faults", fault_id=number, kind=kind, target="1", inject_ns=begin, heal_ns=heal)
        leader = 1 + number // 50 % 3
        state = {"topic": "t", "partition": number % 50, "leader": leader, "leader_epoch": number, "isr": [1, 2, 3]}
        tables.add("states", asked_ns=begin, answered_ns=begin + 1, source="metadata", **state)
    report = report_of(tmp_path, tables)
    page = runs_page(report)
    assert len(page) < 400_000
    assert f"{report.tables['partition_load'].num_rows - ROWS_MAX} more in tables/partition_load.csv" in page
    assert "734 later ones are not drawn; all are in tables/faults.csv" in page
    assert page.count("later ones are not drawn") == 1


def test_terminal_has_no_row_for_an_anomaly_of_runs_without_a_column(tmp_path):
    runs = [Tables(run_id=f"run {number}") for number in range(COLUMNS_MAX + 1)]
    for made in runs:
        made.op(1, "produce", 0, SECOND, acks=-1)
    report = report_of(tmp_path, *runs)
    lost, stale = (Judgement(1, 0, (Anomaly(name, Verdict.VIOLATION, 2, ()),)) for name in ("lost-write", "stale-read"))
    shown = as_text(render_report(replace(report, judgements=(lost, stale, *report.judgements[2:])), tmp_path), 200)
    assert "1 earlier run left out" in shown
    assert "stale-read" in shown
    assert "lost-write" not in shown


def test_engine_failure_is_reported_in_one_line(tmp_path):
    with local_engine(tmp_path) as engine, pytest.raises(LocalEngineError, match="DuckDB: ") as raised:
        engine.query("SELECT *\nFROM nowhere")
    assert "\n" not in str(raised.value)


def test_engine_without_room_names_the_options(tmp_path):
    engine = local_engine(tmp_path, memory_mb=64)
    with engine as opened, pytest.raises(LocalEngineError, match=r"had no room.*--memory-limit.*--out"):
        opened.query("SELECT list(x) AS all_of_them FROM range(100000000) AS numbers(x)")
