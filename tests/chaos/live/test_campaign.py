"""Sessions of rounds whose target does not start: when they end, their result, and an early interruption."""

import json
from types import SimpleNamespace

import pytest

from chaos.live import campaign
from chaos.live.campaign import NOT_RUN_MAX, NothingRunsError, Plan, run_chaos
from chaos.live.events import ChaosEnded, RoundJudged, RoundNotRun
from chaos.live.findings import ChaosFinding
from chaos.live.report import Report, RoundFacts
from conformance.trial.trial import Trial
from fixtures.faults import Kill, Role, Timed
from fixtures.targets.target import TargetError
from kafkatrial.chaos_session import ChaosRunner
from kafkatrial.exit_codes import ExitCode
from linearizability.judgement import Judgement

KILL = Trial(schedule=(Timed(0, Kill(Role.LEADER), 100),))


@pytest.fixture
def targets(monkeypatch):
    """Return a dict that a test fills: for each target an iterator, with a value for each round.

    The value is true if the target starts. After the last value, the target does not start.
    """
    starts = {}

    def run_on(target, trial, run_dir, show, disk):
        if not next(starts[target], False):
            raise TargetError(f"{target} did not start: no port")
        run_dir.mkdir(parents=True)
        return Report(trial=trial, target=target, judgement=Judgement(0, 0, ()), facts=RoundFacts())

    monkeypatch.setattr(
        campaign, "remove_unsupported_faults", lambda target, trial, disk: SimpleNamespace(trial=KILL, unsupported={})
    )
    monkeypatch.setattr(campaign, "run_on", run_on)
    return starts


def plan_of(tmp_path, *targets, **chosen):
    return Plan(targets, 7, tmp_path, tmp_path / "failures", **{"rounds_max": None, **chosen})


def test_a_session_without_a_limit_ends_if_a_target_does_not_start(targets, tmp_path):
    targets["broken"] = iter([True, False, False, True])
    events = []
    with pytest.raises(NothingRunsError) as raised:
        run_chaos(plan_of(tmp_path, "broken"), events.append)
    assert str(raised.value) == "5 rounds in a row could not be run, the last one: broken did not start: no port"
    assert sum(isinstance(event, RoundJudged) for event in events) == 2
    assert sum(isinstance(event, RoundNotRun) for event in events) == 2 + NOT_RUN_MAX
    assert isinstance(events[-1], ChaosEnded)
    assert events[-1].complete


def test_rounds_continue_while_another_target_starts(targets, tmp_path):
    targets.update(broken=iter([]), well=iter([True] * 20))
    events = []
    run_chaos(plan_of(tmp_path, "broken", "well", rounds_max=20), events.append)
    assert sum(isinstance(event, RoundJudged) for event in events) == 20


def test_the_command_prints_one_line_and_fails(targets, tmp_path, capsys):
    targets["broken"] = iter([])
    assert ChaosRunner(plan_of(tmp_path, "broken"), as_json=True).run() is ExitCode.INTERNAL
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "kafkatrial: 5 rounds in a row could not be run, the last one: broken did not start: no port",
    ]
    assert (tmp_path / "summary.json").exists()


def test_a_shrinking_run_that_could_not_be_run_is_no_round(targets, tmp_path, capsys):
    targets["ill"] = iter([True])
    sought = ChaosFinding("seen", "the effect", KILL, is_seen=lambda _: True, kinds=("kill",))
    plan = plan_of(tmp_path, "ill", rounds_max=1, sought=sought)
    assert ChaosRunner(plan, as_json=True).run() is ExitCode.OK
    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["rounds"]), summary["not_run"]) == (1, [])
    assert [(each["name"], each["confirmed"]) for each in summary["failures"]] == [("seen", False)]


def test_an_interruption_before_the_first_round_does_not_mention_histories(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "remove_unsupported_faults", interrupted)
    assert ChaosRunner(plan_of(tmp_path, "reference"), as_json=True).run() is ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "kafkatrial: interrupted; no round has run\n"
