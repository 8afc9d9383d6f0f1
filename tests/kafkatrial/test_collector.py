"""Collector: results from events, and exit codes from results."""

from datetime import UTC, datetime

import pytest

from conformance.events import (
    RequirementJudged,
    RunEnded,
    RunStarted,
    TargetStarted,
    TargetStarting,
)
from kafkatrial.collector import Collector, exit_code_of_results
from kafkatrial.exit_codes import ExitCode
from linearizability.finding import Difference, Finding, Standing
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def judged(verdict, **fields):
    return RequirementJudged(
        Finding(Verdict(verdict), requirement="a/b", level="MUST", target="t", scripts=1, **fields)
    )


def collect(*events):
    collector = Collector(["t"], [], seed=7, profile="ci", now=NOW)
    for event in events:
        collector.handle(event)
    return collector.results


def test_a_target_is_completed_step_by_step():
    starting = collect(TargetStarting("t", 3)).targets[0]
    assert (starting.nodes, starting.ready_s) == (3, None)
    started = collect(TargetStarting("t", 3), TargetStarted("t", 3, 1.5, {"broker": "4.3.1"})).targets[0]
    assert (started.nodes, started.ready_s, started.versions) == (3, 1.5, {"broker": "4.3.1"})


def test_a_finding_is_kept_completely():
    evidence = Evidence((1,), "t", 0, 1, 2, "gone")
    judgement = Judgement(5, 6, (Anomaly("lost-write", Verdict.VIOLATION, 2, (evidence,)),))
    difference = Difference("u", "semantic", 1, "x", "y")
    event = judged("violation", judgement=judgement, differences=(difference,), program="p")
    assert collect(event).outcomes == (event.finding,)
    assert event.finding.standing is Standing.VIOLATION


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([judged("ok")], ExitCode.OK),
        ([judged("ok"), judged("not-applicable")], ExitCode.OK),
        ([judged("ok"), judged("violation", expected_violation=True)], ExitCode.OK),
        ([judged("ok", expected_violation=True)], ExitCode.VIOLATION),
        ([judged("violation"), judged("unknown")], ExitCode.VIOLATION),
        ([judged("violation", flaky=True)], ExitCode.VIOLATION),
        ([judged("ok"), judged("unknown")], ExitCode.INCONCLUSIVE),
        ([judged("unknown", expected_violation=True)], ExitCode.OK),  # blocked by an expected violation
        ([judged("not-applicable")], ExitCode.NOTHING_RAN),
        ([], ExitCode.NOTHING_RAN),
    ],
)
def test_exit_code_of_a_run_that_ended(events, code):
    assert exit_code_of_results(collect(*events, RunEnded(complete=True, seed=7, seconds=1.0))) == code


@pytest.mark.parametrize("end", [(), (RunEnded(complete=False, seed=7, seconds=1.0),)])
@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("ok", ExitCode.INTERRUPTED),
        ("unknown", ExitCode.INTERRUPTED),
        ("violation", ExitCode.VIOLATION),
    ],
)
def test_a_run_without_its_end_was_interrupted_unless_it_found_a_violation(verdict, code, end):
    assert exit_code_of_results(collect(judged(verdict), *end)) == code


def test_an_event_without_a_verdict_adds_no_outcome():
    assert collect(RunStarted("d", 7, "ci", ("t",), ("a/b",))).outcomes == ()
