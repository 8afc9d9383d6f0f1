"""Work of a request that takes several events. In Kafka, a pool of request handler threads does such work.

Rules of this file:
- The first step runs at once; most requests have only one step.
- The remaining steps run one per event. All steps of one request run before those of the next, which limits the memory.
- State may change between two steps. So steps use immutable values, and `on_done` must check a result that depends on
  the state.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.request import Request
from reference_broker.core.timers import Timers
from reference_broker.protocol.steps import Steps


@dataclass(frozen=True, slots=True)
class _Task:
    request: Request
    steps: Steps[Any]
    on_done: Callable[[Any, Now], None]

    def advance(self, now: Now) -> bool:
        """Run one step. Return whether it was the last one."""
        try:
            next(self.steps)
        except StopIteration as done:
            self.on_done(done.value, now)
            return True
        return False


class Work:
    """The unfinished work of a node.

    :param timers: schedule the next step.
    :param fail: called with the request if a step after the first one raises an exception, which is then raised again.
    """

    def __init__(self, timers: Timers, fail: Callable[[Request], None]) -> None:
        self._timers = timers
        self._fail = fail
        self._unfinished: deque[_Task] = deque()

    def run(self, request: Request, steps: Steps[Any], on_done: Callable[[Any, Now], None], now: Now) -> None:
        """Run the first step at once and the others one per event, then call `on_done` with the result."""
        task = _Task(request, steps, on_done)
        if not task.advance(now):
            self._unfinished.append(task)
            if len(self._unfinished) == 1:
                self._timers.set(now.monotonic_ms, self._continue)

    def _continue(self, now: Now) -> None:
        task = self._unfinished[0]
        is_done = True
        try:
            is_done = task.advance(now)
        except Exception:
            self._fail(task.request)
            raise
        finally:
            if is_done:
                self._unfinished.popleft()
            if self._unfinished:
                self._timers.set(now.monotonic_ms, self._continue)
