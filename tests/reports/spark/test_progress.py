"""Progress of Spark: its line, and the tasks of the stages of a step."""

import pytest

from reports.spark.progress import Progress, Watch


@pytest.fixture
def reported():
    return []


def watch(reported, times):
    return Watch(reported.append, clock=iter(times).__next__)


def test_line_has_step_tasks_rate_and_time_left():
    progress = Progress("judging topic partitions", 10, 40, 4_000_000, 5.0)
    assert str(progress) == "judging topic partitions: 10/40 tasks, 200,000 rows/s, 15 s left"


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress("s", 0, 4, 100, 5.0), "s: 0/4 tasks"),
        (Progress("s", 1, 4, 0, 5.0), "s: 1/4 tasks, 15 s left"),
        (Progress("s", 4, 4, 0, 5.0, "http://h:4040"), "s: 4/4 tasks, 0 s left (http://h:4040)"),
    ],
)
def test_line_omits_unknown_values(progress, line):
    assert str(progress) == line


def test_stage_that_no_longer_runs_is_done(reported):
    watched = watch(reported, [0.0, 0.0, 1.0, 2.0])
    with watched.step("reading", 80):
        watched.update({1: (2, 4)})
        watched.update({2: (1, 4)})
    assert reported == [Progress("reading", 2, 4, 80, 1.0), Progress("reading", 5, 8, 80, 2.0)]


def test_nothing_is_reported_twice_or_between_steps(reported):
    watched = watch(reported, [0.0, 0.0, 1.0, 2.0, 3.0])
    watched.update({1: (1, 4)})
    with watched.step("one"):
        watched.update({})
        watched.update({1: (1, 4)})
        watched.update({1: (1, 4)})
    with watched.step("two"):
        watched.update({7: (1, 4)})
    assert [(progress.step, progress.tasks_done, progress.tasks) for progress in reported] == [
        ("one", 1, 4),
        ("two", 1, 4),
    ]
