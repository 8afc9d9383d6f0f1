"""Timers compared with a list of actions that is sorted by time, then by the order of calls."""

from hypothesis import given
from hypothesis import strategies as st

from reference_broker.core.clock import Now
from reference_broker.core.timers import Timers


@given(
    moments=st.lists(st.integers(0, 50), max_size=600),
    cancelled=st.sets(st.integers(0, 599)),
    steps=st.lists(st.integers(0, 60), max_size=5),
)
def test_due_actions_run_once_and_in_order_unless_cancelled(
    moments: list[int], cancelled: set[int], steps: list[int]
) -> None:
    timers, done = Timers(), []
    handles = [timers.set(at_ms, lambda _, number=number: done.append(number)) for number, at_ms in enumerate(moments)]
    for number in cancelled & set(range(len(moments))):
        timers.cancel(handles[number])
        timers.cancel(handles[number])
    live = [(at_ms, number) for number, at_ms in enumerate(moments) if number not in cancelled]
    for now_ms in sorted(steps):
        timers.fire(Now(0, now_ms))
        assert done == [number for at_ms, number in sorted(live) if at_ms <= now_ms]
        waiting = [at_ms for at_ms, _ in live if at_ms > now_ms]
        assert timers.next_ms == min(waiting, default=None)


def test_cancelled_timers_are_removed_from_memory() -> None:
    timers = Timers()
    for number in range(10_000):
        timers.cancel(timers.set(1_000_000 + number, lambda _: None))
    assert len(timers._heap) < 1000


def test_timer_that_an_action_sets_for_the_current_time_fires_at_the_next_call() -> None:
    timers, done = Timers(), []

    def action(now: Now) -> None:
        done.append("action")
        timers.set(now.monotonic_ms, action)

    timers.set(5, action)
    timers.set(5, lambda _: done.append("other"))
    timers.fire(Now(0, 5))
    assert done == ["action", "other"]
    assert timers.next_ms == 5
    timers.fire(Now(0, 5))
    assert done == ["action", "other", "action"]


def test_the_actions_of_one_call_are_bounded() -> None:
    timers, done = Timers(), []
    for number in range(3):
        timers.set(number, lambda _, number=number: done.append(number))
    timers.cancel(timers.set(0, lambda _: done.append("cancelled")))
    for called in range(1, 4):
        timers.fire(Now(0, 5), actions_max=1)
        assert done == [*range(called)]
    assert timers.next_ms is None
