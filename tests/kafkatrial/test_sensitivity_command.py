"""`kafkatrial sensitivity`: detected and missed defects on the terminal, as JSON and as a page, and the exit code."""

import json

import pytest

from chaos.defects.registry import DEFECTS
from chaos.sensitivity import (
    CleanRan,
    DefectTried,
    FalseAlarm,
    SensitivityEnded,
    SensitivityStarted,
)
from kafkatrial import sensing
from kafkatrial.app import run_command
from kafkatrial.exit_codes import ExitCode

FIRST, SECOND = list(DEFECTS)[:2]
CAUGHT = DefectTried(FIRST, "lost-write", "value 7 is gone", True, 3, 4, 0.5)
MISSED = DefectTried(SECOND, "", "", False, None, 300, 60.0)
ALARM = CleanRan(5, 10, FalseAlarm(5, "phantom-read", "value 9"))


@pytest.fixture
def events(monkeypatch):
    """Return a function that sets the events of the campaign, except its start and its end."""

    def set_events(*between, complete=True):
        def run_sensitivity(plan):
            yield SensitivityStarted(plan.defects, plan.first, plan.seconds, plan.workers)
            yield from between
            yield SensitivityEnded(complete, 1.5)

        monkeypatch.setattr(sensing, "run_sensitivity", run_sensitivity)

    return set_events


def test_all_defects_detected_is_ok(events, capsys):
    events(CAUGHT, CleanRan(0, 1, None))
    assert run_command(["sensitivity", FIRST]) is ExitCode.OK
    printed = capsys.readouterr().out
    assert f"{FIRST} detected by lost-write, 4 trials" in printed
    assert "1 of 1 defects detected" in printed


def test_a_defect_detected_by_a_requirement_has_a_command(events, capsys):
    events(DefectTried(FIRST, "group/commit", "offset 3 is gone", True, None, 0, 0.5))
    assert run_command(["sensitivity", FIRST]) is ExitCode.OK
    assert f"group/commit  kafkatrial sensitivity {FIRST}" in capsys.readouterr().out


def test_a_missed_defect_is_a_violation_and_printed_with_its_story(events, capsys):
    events(CAUGHT, MISSED)
    assert run_command(["sensitivity", FIRST, SECOND]) is ExitCode.VIOLATION
    assert DEFECTS[SECOND].story[:60] in " ".join(capsys.readouterr().out.split())


def test_a_false_alarm_is_a_violation(events, capsys):
    events(CAUGHT, ALARM)
    assert run_command(["sensitivity", FIRST]) is ExitCode.VIOLATION
    assert "seed 5 violates phantom-read on the clean broker" in capsys.readouterr().out


def test_one_false_alarm_is_printed_once(events, capsys):
    once = DefectTried(FIRST, "lost-write", "", True, 6, 2, 0.1, (FalseAlarm(5, "phantom-read", "value 9"),))
    events(once, ALARM)
    run_command(["sensitivity", FIRST, "--json"])
    assert len(json.loads(capsys.readouterr().out)["false_alarms"]) == 1


def test_an_interruption_keeps_the_results_so_far(events, capsys, tmp_path):
    events(CAUGHT, complete=False)
    assert run_command(["sensitivity", FIRST, SECOND, "--out", str(tmp_path)]) is ExitCode.INTERRUPTED
    assert "interrupted, 1 not tried" in capsys.readouterr().out
    assert "interrupted" in (tmp_path / "sensitivity.html").read_text(encoding="utf-8")


def test_json_is_one_object_and_the_same_as_the_file(events, capsys, tmp_path):
    events(CAUGHT, MISSED)
    assert run_command(["sensitivity", "--json", "--out", str(tmp_path), FIRST, SECOND]) is ExitCode.VIOLATION
    printed = json.loads(capsys.readouterr().out)
    assert printed["missed"] == [SECOND]
    assert printed == json.loads((tmp_path / "sensitivity.json").read_text(encoding="utf-8"))


def test_an_area_selects_its_defects(events, capsys):
    assert run_command(["sensitivity", "--list", "groups", "--json"]) is ExitCode.OK
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == [each.name for each in DEFECTS.values() if each.area == "groups"]
