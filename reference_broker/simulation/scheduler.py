"""Virtual time: a heap of actions, each done at its moment, in the order in which they were put there.

Nothing here reads a clock, and nothing draws: who schedules decides the delays. So the same actions give the same run,
bit for bit, whatever the machine or the hash seed.
"""

import heapq
import itertools
from collections.abc import Callable

Action = Callable[[], None]

NS_PER_MS = 1_000_000


class Scheduler:
    """All that is to happen.

    :ivar now_ms: virtual milliseconds since the start of the simulation.
    :ivar events: how many actions were done.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = itertools.count()
        self._last_ns = 0

    def at(self, at_ms: int, action: Action) -> None:
        """Do something at a moment; at once, behind what is due by now, where that is past."""
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), next(self._sequence), action))

    def after(self, delay_ms: int, action: Action) -> None:
        """Do something so much later."""
        self.at(self.now_ms + delay_ms, action)

    def step(self) -> bool:
        """Do the next action; false where there is none."""
        if not self._heap:
            return False
        self.now_ms, _, action = heapq.heappop(self._heap)
        self.events += 1
        action()
        return True

    def run_until(self, condition: Callable[[], bool], *, end_ms: int) -> bool:
        """Let time pass until this is so; false where it is `end_ms` and it is not."""
        while not condition():
            if not self._heap or self._heap[0][0] > end_ms:
                self.now_ms = max(self.now_ms, end_ms)
                return False
            self.step()
        return True

    def run(self, for_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + for_ms
        while self._heap and self._heap[0][0] <= end_ms:
            self.step()
        self.now_ms = max(self.now_ms, end_ms)

    def now_ns(self) -> int:
        """A clock for histories: it never shows one time twice, so that what came first is seen to."""
        self._last_ns = max(self._last_ns + 1, self.now_ms * NS_PER_MS)
        return self._last_ns
