"""One line that says how far Spark is."""

import pytest

from reports.spark.progress import Progress, Watch


@pytest.fixture
def told():
    return []


def watch(told, times):
    return Watch(told.append, clock=iter(times).__next__)


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
def test_line_leaves_out_what_is_not_known(progress, line):
    assert str(progress) == line


def test_stage_that_runs_no_more_counts_as_done(told):
    seen = watch(told, [0.0, 0.0, 1.0, 2.0])
    with seen.step("reading", 80):
        seen.update({1: (2, 4)})
        seen.update({2: (1, 4)})
    assert told == [Progress("reading", 2, 4, 80, 1.0), Progress("reading", 5, 8, 80, 2.0)]


def test_nothing_is_told_twice_nor_between_steps(told):
    seen = watch(told, [0.0, 0.0, 1.0, 2.0, 3.0])
    seen.update({1: (1, 4)})
    with seen.step("one"):
        seen.update({})
        seen.update({1: (1, 4)})
        seen.update({1: (1, 4)})
    with seen.step("two"):
        seen.update({7: (1, 4)})
    assert [(progress.step, progress.tasks_done, progress.tasks) for progress in told] == [("one", 1, 4), ("two", 1, 4)]
