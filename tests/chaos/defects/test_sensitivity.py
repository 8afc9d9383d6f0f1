"""Sensitivity: events for detected and missed defects, false alarms, trials without end, and an interruption."""

import pytest

from chaos import sensitivity
from chaos.campaign.violation import Violation
from chaos.defects.registry import DEFECTS, UnknownDefectError
from chaos.sensitivity import (
    CleanRan,
    DefectTried,
    Plan,
    SensitivityEnded,
    SensitivityStarted,
    run_sensitivity,
    try_defect,
    violation_of,
)
from conformance.trial.trial import Trial

EASY = DEFECTS["commit-what-the-leader-has"]


def test_an_easy_defect_is_detected_and_the_clean_broker_has_no_violation():
    events = list(run_sensitivity(Plan((EASY.name,), seconds=20.0)))
    assert isinstance(events[0], SensitivityStarted)
    tried = events[1]
    assert isinstance(tried, DefectTried)
    assert (tried.defect, tried.name, tried.is_expected) == (EASY.name, "watermark-on-isr", True)
    clean = [event for event in events if isinstance(event, CleanRan)]
    assert len(clean) == tried.trials
    assert [event.false_alarm for event in clean if event.false_alarm] == []
    assert isinstance(events[-1], SensitivityEnded)
    assert events[-1].complete


def test_a_violation_of_the_clean_broker_is_a_false_alarm(monkeypatch):
    violation = Violation("lost-write", "as always", 0)
    monkeypatch.setattr(sensitivity, "violation_of", lambda trial, defect=None: violation)
    tried = try_defect(EASY, [7], seconds=60.0)
    assert (tried.name, tried.trials) == ("", 1)
    assert [(alarm.seed, alarm.name) for alarm in tried.false_alarms] == [(7, "lost-write")]


def test_a_defect_without_a_violation_is_missed(monkeypatch):
    monkeypatch.setattr(sensitivity, "violation_of", lambda trial, defect=None: None)
    tried = try_defect(EASY, range(9), seconds=0.0)
    assert (tried.name, tried.seed, tried.is_expected) == ("", None, False)


def test_a_saved_trial_that_does_not_detect_its_defect_is_counted(monkeypatch):
    trials = []
    monkeypatch.setattr(sensitivity, "violation_of", lambda trial, defect=None: trials.append(trial))
    assert try_defect(EASY, [7], seconds=60.0, known=Trial()).trials == len(trials) == 2


def test_a_requirement_is_tried_before_any_trial(monkeypatch):
    def no_trial(trial, defect=None):
        raise AssertionError("a trial ran")

    monkeypatch.setattr(sensitivity, "violation_of", no_trial)
    tried = try_defect(DEFECTS["accept-any-acks"], range(9), seconds=60.0)
    assert (tried.name, tried.seed, tried.trials) == ("produce/invalid-acks-are-rejected", None, 0)


def test_a_trial_that_does_not_end_is_cancelled(monkeypatch):
    def endless(trial):
        while True:
            pass

    monkeypatch.setattr(sensitivity, "run", endless)
    monkeypatch.setattr(sensitivity, "TRIAL_SECONDS_MAX", 0.05)
    found = violation_of(Trial())
    assert found is not None
    assert found.name == "endless"


def test_an_unknown_defect_is_rejected_before_anything_starts():
    with pytest.raises(UnknownDefectError):
        next(iter(run_sensitivity(Plan(("nosuch",)))))


def test_an_interruption_is_reported(monkeypatch):
    def interrupted(*args, **others):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(sensitivity, "in_order", interrupted)
    events = list(run_sensitivity(Plan((EASY.name,))))
    assert events[-1].complete is False
