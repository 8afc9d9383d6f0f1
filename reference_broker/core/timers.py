"""Timers: a heap of deadlines with actions. The shell sleeps until `next_ms`, and then calls `fire`.

Follows: org.apache.kafka.server.util.timer.SystemTimer.
"""

import heapq
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass

from reference_broker.core.clock import Now

Action = Callable[[Now], None]
_CANCELLED_MIN = 256
"""The heap is rebuilt if it has more cancelled timers than this, and more than half of its timers are cancelled."""


@dataclass(slots=True, eq=False)
class Timer:
    """An action and the time at which it is due; the action is null once it was run or cancelled."""

    at_ms: int
    action: Action | None

    @property
    def due_ms(self) -> int | None:
        """The time at which the action is due; null once it was run or cancelled."""
        return None if self.action is None else self.at_ms


class Timers:
    """Actions by monotonic time in milliseconds; actions with the same time run in the order of `set`."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, at_ms: int, action: Action) -> Timer:
        """Schedule an action."""
        timer = Timer(at_ms, action)
        heapq.heappush(self._heap, (at_ms, next(self._sequence), timer))
        return timer

    def cancel(self, timer: Timer) -> None:
        """Cancel an action, unless it has run or was cancelled."""
        if timer.action is not None:
            timer.action = None
            self._cancelled += 1
            if self._cancelled > max(_CANCELLED_MIN, len(self._heap) // 2):
                self._heap = [entry for entry in self._heap if entry[2].action is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def set_periodic(self, first_ms: int, period_ms: int, action: Action) -> None:
        """Schedule an action for the first time, and then again one period after each run."""

        def fire(now: Now) -> None:
            self.set(now.monotonic_ms + period_ms, fire)
            action(now)

        self.set(first_ms, fire)

    @property
    def next_ms(self) -> int | None:
        """Monotonic time at which the next action is due; null if there is none."""
        self._drop_cancelled()
        return self._heap[0][0] if self._heap else None

    def fire(self, now: Now, actions_max: int = sys.maxsize) -> None:
        """Run the actions that are due. Timers that these actions set wait for the next call, even if they are due.

        So other events can be processed between the steps of long work.

        :param actions_max: maximum number of actions to run; further due actions wait for the next call.
        """
        first_new_number = next(self._sequence)
        run = 0
        while run < actions_max and self._is_due(now.monotonic_ms, first_new_number):
            timer = heapq.heappop(self._heap)[2]
            action, timer.action = timer.action, None
            if action is None:
                self._cancelled -= 1
            else:
                run += 1
                action(now)

    def _is_due(self, now_ms: int, before: int) -> bool:
        """Whether the next timer is due, and its sequence number is below `before`."""
        return bool(self._heap) and self._heap[0][0] <= now_ms and self._heap[0][1] < before

    def _drop_cancelled(self) -> None:
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
