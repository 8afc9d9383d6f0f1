"""Defects on real processes: caught by chaos, by its own judgement, and the clean broker is not blamed."""

from types import SimpleNamespace

import pytest

from chaos.campaign.violation import Violation
from chaos.defects.live import __main__ as command
from chaos.defects.live.registry import LIVE_DEFECTS, live_defect
from chaos.defects.live.rounds import BLACKOUT_OF_SEGMENTS, ROUNDS
from chaos.defects.live.trial import CLEAN, LiveTried, reasons_not_to_run, try_defects
from chaos.defects.registry import DEFECTS
from fixtures.disk.kinds import DiskKind
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import TargetError, UnknownTargetError

LOST = Violation("lost-write", "1: value 7 is gone")


def report(*violations):
    return SimpleNamespace(violations=violations)


def test_twenty_have_a_round_and_half_of_them_no_simulation_could_see():
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
def test_a_cluster_with_no_such_defect_is_refused(name):
    with pytest.raises(UnknownTargetError, match="there is no defect"):
        parse_target(name)


def test_a_round_is_run_until_it_shows_the_defect_and_once_on_the_clean_broker():
    ran = []

    def run(target, a_round, run_dir, *, disk):
        ran.append(target)
        assert (a_round, disk) == (BLACKOUT_OF_SEGMENTS, DiskKind.FUSE)
        return report(*[LOST] * (len(ran) == 2))

    caught, clean = try_defects(["flush-no-directory"], rounds_max=3, run=run)
    assert ran == ["defective:flush-no-directory"] * 2 + [CLEAN]
    assert (caught.violations, caught.rounds, clean.violations, clean.target) == ((LOST,), 2, (), CLEAN)


def test_rounds_that_defects_share_are_run_once_on_the_clean_broker():
    tried = try_defects(
        ["take-a-write-for-durable", "pass-over-flush-messages"], rounds_max=1, run=lambda *_, **__: report()
    )
    assert [each.target for each in tried].count(CLEAN) == 1


@pytest.mark.usefixtures("machine_without_fuse")
def test_a_power_cut_needs_the_disk_that_loses_directory_entries():
    """On ext4 the defect cannot be seen, so it would count as missed."""
    ran = []
    tried, clean = try_defects(["flush-no-directory"], rounds_max=3, run=lambda *_, **__: ran.append(1))
    assert (tried.refused, clean.refused, ran) == ("no FUSE here",) * 2 + ([],)
    assert not reasons_not_to_run(CLEAN, ROUNDS["end-with-a-connection"])


@pytest.fixture
def machine_without_fuse(monkeypatch):
    monkeypatch.setattr("fixtures.disk.kinds.why_no_fuse", lambda: "no FUSE here")


def test_a_cluster_that_does_not_start_has_caught_nothing():
    def run(*_, **__):
        raise TargetError("node 1 did not listen in time")

    tried, _ = try_defects(["flush-no-directory"], rounds_max=3, run=run)
    assert (tried.violations, tried.rounds, tried.refused) == ((), 1, "node 1 did not listen in time")


@pytest.mark.parametrize(
    ("tried", "code"),
    [
        ([LiveTried("defective:a", (LOST,), 1, 9.0), LiveTried(CLEAN, (), 1, 9.0)], 0),
        ([LiveTried("defective:a", (), 3, 9.0), LiveTried(CLEAN, (), 1, 9.0)], 1),
        ([LiveTried("defective:a", (LOST,), 1, 9.0), LiveTried(CLEAN, (LOST,), 1, 9.0)], 1),
    ],
)
def test_what_was_missed_and_false_alarms_fail(tried, code, monkeypatch, capsys):
    monkeypatch.setattr(command, "try_defects", lambda *_, **__: iter(tried))
    monkeypatch.setattr("sys.argv", ["live", "flush-no-directory"])
    assert command.main() == code
    assert capsys.readouterr().out.startswith("defective:a: " + ("lost-write" if tried[0].violations else "missed"))


@pytest.mark.parametrize(("name", "said"), [("nosuch", "there is no defect"), ("accept-any-acks", "no round is kept")])
def test_a_name_that_cannot_be_tried_is_told_in_one_line(name, said, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["live", name])
    assert command.main() == 4
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_one_that_takes_a_disk_is_caught_and_the_clean_broker_is_not_blamed():
    assert_all_caught(["flush-no-directory"], rounds_max=6)


@pytest.mark.toxiproxy
def test_one_that_takes_a_process_is_caught():
    tried = next(try_defects(["end-with-a-connection"], rounds_max=6))
    assert "node-ended" in {violation.name for violation in tried.violations}, command.described(tried)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_all_are_caught():
    assert_all_caught(ROUNDS, rounds_max=4)


def assert_all_caught(names, rounds_max):
    lacking = {name: reasons for name in names if (reasons := reasons_not_to_run(CLEAN, ROUNDS[name]))}
    if lacking:
        pytest.skip(f"this machine cannot run their rounds: {lacking}")
    tried = list(try_defects(names, rounds_max=rounds_max))
    assert [command.described(each) for each in tried if bool(each.violations) is (each.target == CLEAN)] == []
