"""What is to be done when, as state: a heap of moments and actions. The shell sleeps until `next_ms` and then fires."""

import heapq
import itertools
from collections.abc import Callable

from reference_broker.core.clock import Now

Action = Callable[[Now], None]


class Timers:
    """Actions by monotonic time in milliseconds; those of one moment go off in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = itertools.count()

    def set(self, at_ms: int, action: Action) -> None:
        """Do this then."""
        heapq.heappush(self._heap, (at_ms, next(self._sequence), action))

    def set_periodic(self, first_ms: int, period_ms: int, action: Action) -> None:
        """Do this then, and again one period after each time."""

        def fire(now: Now) -> None:
            self.set(now.monotonic_ms + period_ms, fire)
            action(now)

        self.set(first_ms, fire)

    @property
    def next_ms(self) -> int | None:
        """When the next action is due."""
        return self._heap[0][0] if self._heap else None

    def fire(self, now: Now) -> None:
        """Do all that is due."""
        while self._heap and self._heap[0][0] <= now.monotonic_ms:
            heapq.heappop(self._heap)[2](now)
