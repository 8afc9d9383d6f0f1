"""The suite detects every defect within a limit of computing time, and reports no violation of the clean broker."""

import os

import pytest

from chaos.defects.registry import DEFECTS
from chaos.sensitivity import CleanRan, DefectTried, Plan, run_sensitivity
from tests.sampling import part

WORKERS = len(os.sched_getaffinity(0))
SAMPLE = 10


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_each_defect_of_a_sample_is_detected_within_a_minute():
    """The saved trial of a defect runs before the seeds."""
    assert_all_detected(Plan(tuple(part(list(DEFECTS), SAMPLE)), seconds=60.0, workers=WORKERS, known_first=True))


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_defect_is_detected_by_its_saved_trial():
    assert_all_detected(Plan(tuple(DEFECTS), seconds=60.0, workers=WORKERS, known_first=True))


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_defect_is_detected_by_seeds_without_its_saved_trial():
    assert_all_detected(Plan(tuple(DEFECTS), seconds=600.0, workers=WORKERS))


def assert_all_detected(plan: Plan):
    events = list(run_sensitivity(plan))
    assert [event.defect for event in events if isinstance(event, DefectTried) and not event.name] == []
    alarms = [event.false_alarm for event in events if isinstance(event, CleanRan) and event.false_alarm]
    assert alarms + [alarm for event in events if isinstance(event, DefectTried) for alarm in event.false_alarms] == []
