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
def test_a_sample_of_the_defects_is_detected_within_a_minute():
    """Each saved trial runs before the seeds; only the nightly test "from the first seed on" runs without them."""
    assert_all_caught(Plan(tuple(part(list(DEFECTS), SAMPLE)), seconds=60.0, workers=WORKERS, known_first=True))


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_defect_is_detected_by_its_saved_trial():
    assert_all_caught(Plan(tuple(DEFECTS), seconds=60.0, workers=WORKERS, known_first=True))


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_defect_is_found_from_the_first_seed_on():
    assert_all_caught(Plan(tuple(DEFECTS), seconds=600.0, workers=WORKERS))


def assert_all_caught(plan: Plan):
    events = list(run_sensitivity(plan))
    assert [event.defect for event in events if isinstance(event, DefectTried) and not event.name] == []
    alarms = [event.false_alarm for event in events if isinstance(event, CleanRan) and event.false_alarm]
    assert alarms + [alarm for event in events if isinstance(event, DefectTried) for alarm in event.false_alarms] == []
