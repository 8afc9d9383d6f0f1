"""Threads of a simulation run one at a time in a reproducible order, and end with it."""

import pytest

from chaos.simulation.stage import STUCK_MS, SimulatedStage, StoppedError
from reference_broker.simulation.scheduler import Scheduler


@pytest.fixture
def scheduler():
    return Scheduler()


@pytest.fixture
def stage(scheduler):
    return SimulatedStage(scheduler)


def sleep(stage, duration_ms):
    stage.wait(lambda: False, duration_ms)


def test_threads_run_one_at_a_time_in_the_order_of_their_waits(stage, scheduler):
    log = []

    def count(name, pause_ms):
        for number in range(3):
            log.append((scheduler.now_ms, name, number))
            sleep(stage, pause_ms)

    tasks = [stage.start(lambda name=name, pause=pause: count(name, pause)) for name, pause in (("a", 10), ("b", 15))]
    log.append("begun")
    for task in tasks:
        task.result()
    assert log == ["begun", (0, "a", 0), (0, "b", 0), (10, "a", 1), (15, "b", 1), (20, "a", 2), (30, "b", 2)]


def test_a_task_runs_only_while_its_starter_waits(stage):
    runs = []
    stage.start(lambda: runs.append(1))
    assert not runs
    sleep(stage, 1)
    assert runs


def test_an_event_wakes_all_waiting_threads(stage, scheduler):
    event = stage.event()
    woken = []

    def await_event():
        assert event.wait(10)
        woken.append(scheduler.now_ms)

    tasks = [stage.start(await_event) for _ in range(2)]
    assert not event.wait(0.5)
    event.set()
    for task in tasks:
        task.result()
    assert woken == [500, 500]
    assert event.wait()


def test_the_simulation_advances_while_all_threads_wait(stage, scheduler):
    done = []
    scheduler.at(250, lambda: done.append(scheduler.now_ms))
    assert stage.wait(lambda: done, 1_000)
    assert scheduler.now_ms == 250
    assert not stage.wait(lambda: len(done) == 2, 1_000)
    assert scheduler.now_ms == 1_250


def test_an_error_is_raised_by_the_task(stage):
    def fail():
        sleep(stage, 5)
        raise ValueError("no")

    task = stage.start(fail)
    with pytest.raises(ValueError, match="no"):
        task.result()
    sleep(stage, 5)


def test_a_failed_step_ends_all_waiting_threads(stage, scheduler):
    def fail():
        raise ZeroDivisionError("a bug")

    scheduler.at(10, fail)
    task = stage.start(lambda: sleep(stage, 100))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        sleep(stage, 100)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        task.result()


@pytest.mark.parametrize("is_busy", [False, True])
def test_threads_that_wait_for_each_other_are_stopped(stage, scheduler, is_busy):
    def tick():
        scheduler.after(STUCK_MS // 10, tick)

    if is_busy:
        tick()
    mine, theirs = stage.event(), stage.event()
    task = stage.start(lambda: theirs.set() if mine.wait() else None)
    with pytest.raises(StoppedError, match="never happens"):
        theirs.wait()
    with pytest.raises(StoppedError, match="never happens"):
        task.result()


def test_wait_fails_after_a_stop(stage):
    stage.stop()
    with pytest.raises(StoppedError, match="stopped"):
        sleep(stage, 1)
