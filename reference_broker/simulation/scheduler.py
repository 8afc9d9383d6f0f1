"""Virtual time: a heap of actions, performed in the order of their times, then in the order of their scheduling.

The module reads no clock and no random generator: the caller determines the delays. Therefore the same actions give the
same run, bit for bit, on any machine and with any hash seed.
"""

import heapq
import itertools
from collections.abc import Callable

Action = Callable[[], None]

NS_PER_MS = 1_000_000


class Scheduler:
    """The pending actions.

    :ivar now_ms: virtual milliseconds since the start of the simulation.
    :ivar events: number of actions performed.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = itertools.count()
        self._last_ns = 0

    def at(self, at_ms: int, action: Action) -> None:
        """Schedule an action. If `at_ms` has passed, the action follows all actions that are already due."""
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), next(self._sequence), action))

    def after(self, delay_ms: int, action: Action) -> None:
        """Schedule an action after a delay."""
        self.at(self.now_ms + delay_ms, action)

    def step(self) -> bool:
        """Perform the next action. Return False if there is none."""
        if not self._heap:
            return False
        self.now_ms, _, action = heapq.heappop(self._heap)
        self.events += 1
        action()
        return True

    def run_until(self, condition: Callable[[], bool], *, end_ms: int) -> bool:
        """Advance time until the condition is true or `end_ms` is reached. Return whether it is true."""
        while not condition():
            if not self._heap or self._heap[0][0] > end_ms:
                self.now_ms = max(self.now_ms, end_ms)
                return False
            self.step()
        return True

    def run(self, for_ms: int) -> None:
        """Advance time by a duration."""
        end_ms = self.now_ms + for_ms
        while self._heap and self._heap[0][0] <= end_ms:
            self.step()
        self.now_ms = max(self.now_ms, end_ms)

    def now_ns(self) -> int:
        """Return the virtual time for histories. Each call returns a later time, so that events are ordered."""
        self._last_ns = max(self._last_ns + 1, self.now_ms * NS_PER_MS)
        return self._last_ns
