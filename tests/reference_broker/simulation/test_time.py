"""Virtual time, and clocks of machines with drift and jumps."""

from hypothesis import given
from hypothesis import strategies as st

from reference_broker.simulation.clock import WALL_START_MS, MachineClock
from reference_broker.simulation.scheduler import NS_PER_MS, Scheduler

moments = st.integers(0, 10_000)
rates = st.integers(-500_000, 500_000)


@given(st.lists(st.tuples(moments, moments), max_size=30))
def test_actions_run_at_their_time_and_in_the_order_of_scheduling(planned):
    """An action that is scheduled for a past time runs now, after all actions that are already due."""
    scheduler = Scheduler()
    done: list[tuple[int, int]] = []

    def plan(number: int, at_ms: int, then_ms: int) -> None:
        def action() -> None:
            done.append((scheduler.now_ms, number))
            scheduler.at(then_ms, lambda: done.append((scheduler.now_ms, 1_000 + number)))

        scheduler.at(at_ms, action)

    for number, (at_ms, then_ms) in enumerate(planned):
        plan(number, at_ms, then_ms)
    while scheduler.step():
        pass
    first = [(at_ms, number) for number, (at_ms, _) in enumerate(planned)]
    then = [(max(at_ms, then_ms), 1_000 + number) for number, (at_ms, then_ms) in enumerate(planned)]
    assert sorted(done) == sorted(first + then)
    assert [at_ms for at_ms, _ in done] == sorted(at_ms for at_ms, _ in done)
    assert [entry for entry in done if entry[1] < 1_000] == sorted(first)
    assert scheduler.events == len(done)


def test_time_advances_to_the_end_without_events():
    scheduler, done = Scheduler(), []
    scheduler.at(10, lambda: done.append(scheduler.now_ms))
    scheduler.at(30, lambda: done.append(scheduler.now_ms))
    scheduler.run(20)
    assert (done, scheduler.now_ms) == ([10], 20)
    assert scheduler.run_until(lambda: bool(done[1:]), end_ms=100)
    assert scheduler.now_ms == 30
    assert not scheduler.run_until(lambda: False, end_ms=100)
    assert scheduler.now_ms == 100


def test_nanosecond_times_are_unique():
    scheduler = Scheduler()
    times = [scheduler.now_ns() for _ in range(3)]
    scheduler.run(1)
    times.append(scheduler.now_ns())
    assert times == sorted(set(times))
    assert times[-1] == NS_PER_MS


@given(st.lists(st.tuples(moments, rates), max_size=8), moments)
def test_drifting_clock_is_monotonic_and_converts_its_times_to_true_times(changes, wanted_ms):
    clock, true_ms, shown_ms = MachineClock(), 0, 0
    for passed_ms, rate_ppm in changes:
        true_ms += passed_ms
        now_ms = clock.read(true_ms).monotonic_ms
        assert now_ms >= shown_ms
        clock.set_rate(rate_ppm, true_ms)
        assert clock.read(true_ms).monotonic_ms == now_ms, "a change of the rate does not change the time"
        shown_ms = now_ms
    wanted_ms += shown_ms
    at_ms = clock.true_ms(wanted_ms)
    assert clock.read(at_ms).monotonic_ms >= wanted_ms
    assert at_ms <= true_ms or clock.read(at_ms - 1).monotonic_ms < wanted_ms


def test_rates_and_jumps():
    clock = MachineClock()
    clock.set_rate(100_000, 1_000)
    assert clock.read(2_000).monotonic_ms == 2_100
    clock.wall_offset_ms = -60_000
    now = clock.read(2_000)
    assert (now.wall_ms, now.monotonic_ms) == (WALL_START_MS + 2_100 - 60_000, 2_100)
