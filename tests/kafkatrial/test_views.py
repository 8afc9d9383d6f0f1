"""Progress of runs and installations on a terminal and in a log, the table of targets, and the result of a probe."""

import io

import pytest
from rich.console import Console

from conformance.events import (
    RequirementJudged,
    RequirementStarted,
    RunStarted,
    ScriptRan,
    TargetStarted,
    TargetStarting,
)
from fixtures.targets.probe import BrokerFacts
from fixtures.targets.target import Node
from kafkatrial import target_tables
from kafkatrial.installing import show_progress
from kafkatrial.progress import RunProgress, banner
from kafkatrial.target_tables import render_kinds, render_probe
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from reports.terminal import as_text

JUDGED = RequirementJudged(Finding(Verdict.UNKNOWN, "nothing was read", requirement="a/b", target="t"))
EVENTS = (
    RunStarted("the-run", 7, "ci", ("t", "u"), ("a/b", "a/c")),
    TargetStarting("t", 3),
    TargetStarted("t", 3, 9.04, {"broker": "4.3.1", "java": "17"}),
    RequirementStarted("a/b", 1, 2),
    ScriptRan("a/b", "t", 3, 15),
    ScriptRan("a/b", "u", 2, 15),
    JUDGED,
)


def test_a_log_has_a_line_per_important_event():
    console = Console(file=io.StringIO(), width=40)
    with RunProgress(console) as progress:
        for event in EVENTS:
            progress.handle(event)
    assert console.file.getvalue().splitlines() == [
        "seed 7, profile ci, 2 requirements on t, u",
        "run the-run",
        "starting t, 3 nodes",
        "t is ready after 9.0 s (3 nodes; broker 4.3.1, java 17)",
        "[1/2] ? unknown   a/b  on t: nothing was read",
    ]
    assert "ci, 1 requirement on" in str(banner(RunStarted("the-run", 7, "ci", ("t",), ("a/b",))))


def test_a_terminal_has_a_live_line():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, get_time=lambda: 0.0)
    progress = RunProgress(console)
    for event in EVENTS[:-1]:
        progress.handle(event)
    assert as_text(progress).split("[1/2]")[1].split() == ["a/b", "t", "3/15", "u", "2/15", "0:00"]


def test_no_color_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    RunProgress(console).handle(JUDGED)
    assert "\x1b[3" not in console.file.getvalue()
    assert "? unknown" in console.file.getvalue()


def test_an_installation_in_a_log_has_few_lines(capsys):
    with show_progress("apache-kafka") as report:
        report("resolving apache-kafka", 0, 0)
        for done in range(1, 201):
            report(f"jar-{done}.jar", done, 200)
        report("creating the class data archive", 0, 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["resolving apache-kafka", "jar-1.jar (1/200)", "jar-20.jar (20/200)"]
    assert lines[-2:] == ["jar-200.jar (200/200)", "creating the class data archive"]
    assert len(lines) == 13


@pytest.mark.parametrize("missing", [None, "rejected toxiproxy-server: wrong hash; run: kafkatrial targets install"])
def test_a_missing_target_has_the_command_that_installs_it(monkeypatch, missing):
    monkeypatch.setattr(target_tables, "why_no_mesh", lambda: missing)
    (row,) = [line for line in as_text(render_kinds(), width=240).splitlines() if line.startswith("toxiproxy")]
    assert row.endswith("yes" if missing is None else f"no; {missing}")


@pytest.mark.parametrize(("controller", "shown"), [(1, "node 1"), (-1, "unknown"), (None, "unknown")])
def test_a_probe(controller, shown):
    facts = BrokerFacts({"Fetch": (4, 17)}, "abc", controller, (Node(1, "127.0.0.1", 9092),))
    text = as_text(render_probe(facts))
    assert text.startswith(f"cluster abc, controller {shown}")
    assert [line.split() for line in text.splitlines()][-1] == ["Fetch", "4-17"]
    assert "127.0.0.1:9092" in text


def test_a_hostile_probe():
    facts = BrokerFacts({"Fetch": (4, 17)}, "\a\x1b[31m\nforged line " + "c" * 20_000, 1, ())
    first, *others = as_text(render_probe(facts)).splitlines()
    assert first == r"cluster \x07\x1b[31m\nforged line"
    assert sum(map(len, others)) < 5_000
