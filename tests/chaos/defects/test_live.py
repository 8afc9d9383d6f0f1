"""Defects on real processes: detected by chaos, without a violation of the clean broker."""

from types import SimpleNamespace

import pytest

from chaos.campaign.violation import Violation
from chaos.defects.live import __main__ as command
from chaos.defects.live.registry import LIVE_DEFECTS, live_defect
from chaos.defects.live.rounds import BLACKOUT_OF_SEGMENTS, ROUNDS
from chaos.defects.live.trial import CLEAN, LiveTrialResult, reasons_not_to_run, try_defects
from chaos.defects.registry import DEFECTS
from fixtures.disk.kinds import DiskKind
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import TargetError, UnknownTargetError

pytestmark = pytest.mark.sampled(2)

LOST = Violation("lost-write", "1: value 7 is gone")


def report(*violations):
    return SimpleNamespace(violations=violations)


def test_twenty_defects_have_a_round_and_ten_need_real_processes():
    assert len(ROUNDS) >= 20
    assert len(LIVE_DEFECTS) >= 10
    assert set(LIVE_DEFECTS) <= set(ROUNDS)
    assert set(LIVE_DEFECTS).isdisjoint(DEFECTS)
    assert [live_defect(name).name for name in ROUNDS] == list(ROUNDS)


def test_a_defective_cluster_runs_the_broker_through_the_launcher():
    target = parse_target("defective:flush-no-directory")
    assert target.name == "defective:flush-no-directory"
    assert target.recipe.program == ("chaos.defects.live.launch", "flush-no-directory")


@pytest.mark.parametrize("name", ["defective", "defective:nosuch"])
def test_a_cluster_with_an_unknown_defect_is_rejected(name):
    with pytest.raises(UnknownTargetError, match="there is no defect"):
        parse_target(name)


@pytest.fixture
def machine_with_fuse(monkeypatch):
    """Pretend that FUSE is available. The tests with this fixture replace `run`, and therefore use no disk."""
    monkeypatch.setattr("fixtures.disk.kinds.why_no_fuse", lambda: None)


@pytest.mark.usefixtures("machine_with_fuse")
def test_a_round_runs_until_it_detects_the_defect_and_once_on_the_clean_broker():
    targets = []

    def run(target, a_round, run_dir, *, disk):
        targets.append(target)
        assert (a_round, disk) == (BLACKOUT_OF_SEGMENTS, DiskKind.FUSE)
        return report(*[LOST] * (len(targets) == 2))

    detected, clean = try_defects(["flush-no-directory"], rounds_max=3, run=run)
    assert targets == ["defective:flush-no-directory"] * 2 + [CLEAN]
    assert (detected.violations, detected.rounds, clean.violations, clean.target) == ((LOST,), 2, (), CLEAN)


def test_shared_rounds_run_once_on_the_clean_broker():
    tried = try_defects(
        ["take-a-write-for-durable", "pass-over-flush-messages"], rounds_max=1, run=lambda *_, **__: report()
    )
    assert [each.target for each in tried].count(CLEAN) == 1


@pytest.mark.usefixtures("machine_without_fuse")
def test_a_power_cut_needs_the_disk_that_loses_directory_entries():
    """On ext4 the defect has no effect. If the round ran there, the defect would count as missed."""
    runs = []
    tried, clean = try_defects(["flush-no-directory"], rounds_max=3, run=lambda *_, **__: runs.append(1))
    assert (tried.not_run, clean.not_run, runs) == ("no FUSE here",) * 2 + ([],)
    assert "FUSE" not in reasons_not_to_run(CLEAN, ROUNDS["end-with-a-connection"])


@pytest.fixture
def machine_without_fuse(monkeypatch):
    monkeypatch.setattr("fixtures.disk.kinds.why_no_fuse", lambda: "no FUSE here")


@pytest.mark.usefixtures("machine_with_fuse")
def test_a_cluster_that_does_not_start_detects_nothing():
    def run(*_, **__):
        raise TargetError("node 1 did not listen in time")

    tried, _ = try_defects(["flush-no-directory"], rounds_max=3, run=run)
    assert (tried.violations, tried.rounds, tried.not_run) == ((), 1, "node 1 did not listen in time")


@pytest.mark.parametrize(
    ("tried", "code"),
    [
        ([LiveTrialResult("defective:a", (LOST,), 1, 9.0), LiveTrialResult(CLEAN, (), 1, 9.0)], 0),
        ([LiveTrialResult("defective:a", (), 3, 9.0), LiveTrialResult(CLEAN, (), 1, 9.0)], 1),
        ([LiveTrialResult("defective:a", (LOST,), 1, 9.0), LiveTrialResult(CLEAN, (LOST,), 1, 9.0)], 1),
    ],
)
def test_missed_defects_and_false_alarms_fail(tried, code, monkeypatch, capsys):
    monkeypatch.setattr(command, "try_defects", lambda *_, **__: iter(tried))
    monkeypatch.setattr("sys.argv", ["live", "flush-no-directory"])
    assert command.main() == code
    assert capsys.readouterr().out.startswith("defective:a: " + ("lost-write" if tried[0].violations else "missed"))


@pytest.mark.parametrize(
    ("name", "expected"), [("nosuch", "there is no defect"), ("accept-any-acks", "there is no saved round")]
)
def test_a_defect_without_a_round_is_an_error_of_one_line(name, expected, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["live", name])
    assert command.main() == 4
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_a_defect_of_the_disk_is_detected():
    assert_all_detected(["flush-no-directory"], rounds_max=6)


@pytest.mark.toxiproxy
def test_a_defect_of_the_process_is_detected():
    tried = next(try_defects(["end-with-a-connection"], rounds_max=6))
    assert "node-ended" in {violation.name for violation in tried.violations}, command.result_line(tried)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_all_defects_are_detected():
    assert_all_detected(ROUNDS, rounds_max=4)


def assert_all_detected(names, rounds_max):
    lacking = {name: reasons for name in names if (reasons := reasons_not_to_run(CLEAN, ROUNDS[name]))}
    if lacking:
        pytest.skip(f"this machine cannot run their rounds: {lacking}")
    tried = list(try_defects(names, rounds_max=rounds_max))
    assert [command.result_line(each) for each in tried if bool(each.violations) is (each.target == CLEAN)] == []
