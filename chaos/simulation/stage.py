"""Threads in virtual time: there may be any number, but exactly one runs at a time.

A thread runs until it waits. Then the next thread runs: of those that can continue, the one that has waited longest. If
no thread can continue, the thread that waited last performs the next event of the simulation. Therefore the threads of
a program run in the same order each time.

`wait` raises an error in all waiting threads when the simulation is stopped, when one of its events fails, or when all
threads wait without a timeout for something that never happens.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fixtures.clients.stage import Event, Task
from reference_broker.simulation.scheduler import Scheduler

STUCK_MS = 3_600_000
"""Virtual time after which the simulation is stopped if all threads wait without a timeout."""


class StoppedError(Exception):
    """End of the simulation while threads wait. The message is the reason."""


@dataclass(eq=False, slots=True)
class _Waiter:
    """A waiting thread. It runs again when another thread releases its `baton`."""

    can_continue: Callable[[], bool]
    end_ms: int | None
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class SimulatedStage:
    """Scheduler of the threads of a simulation's clients."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiters: list[_Waiter] = []
        self._names = itertools.count(1)
        self._stopped = ""
        self._failure: Exception | None = None

    def start(self, action: Callable[[], None]) -> Task:
        """Start a thread. It does not run before the calling thread waits."""
        task = _Task(self)
        waiter = _Waiter(lambda: True, None)
        self._waiters.append(waiter)

        def run() -> None:
            waiter.baton.acquire()
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - raised by the task's `result`
                task.error = error
            task.is_done = True
            self._pass_on(None)

        threading.Thread(target=run, name=f"simulated {next(self._names)}", daemon=True).start()
        return task

    def event(self) -> Event:
        """Return a new event."""
        return _Event(self)

    def stop(self, reason: str = "the simulation was stopped") -> None:
        """Stop the simulation: `wait` raises `StoppedError` in all threads."""
        self._stopped = self._stopped or reason

    def wait(self, condition: Callable[[], bool], timeout_ms: int | None) -> bool:
        """Let other threads and time continue until the condition is true or the timeout has passed.

        Return whether the condition is true at the end.

        :raises StoppedError: the simulation was stopped. If one of its events failed, the error of the event is raised
            instead.
        """
        if condition():
            return True
        end_ms = None if timeout_ms is None else self._scheduler.now_ms + timeout_ms
        waiter = _Waiter(condition, end_ms)
        self._waiters.append(waiter)
        if self._pass_on(waiter) is not waiter:
            waiter.baton.acquire()
        if self._failure is not None:
            raise self._failure
        if self._stopped:
            raise StoppedError(self._stopped)
        return condition()

    def _pass_on(self, own: _Waiter | None) -> _Waiter | None:
        """Let the next thread run, possibly the calling one. Return its waiter, or None if no thread waits."""
        since_ms = self._scheduler.now_ms
        while self._waiters:
            ready = next((waiter for waiter in self._waiters if self._is_ready(waiter)), None)
            if ready is not None:
                self._waiters.remove(ready)
                if ready is not own:
                    ready.baton.release()
                return ready
            try:
                self._advance_time(since_ms)
            except Exception as error:  # noqa: BLE001 - a bug of the simulated code, raised in all threads
                self._failure = error
                self.stop("a step of the simulation failed")
        return None

    def _is_ready(self, waiter: _Waiter) -> bool:
        is_late = waiter.end_ms is not None and waiter.end_ms <= self._scheduler.now_ms
        return bool(self._stopped) or is_late or waiter.can_continue()

    def _advance_time(self, since_ms: int) -> None:
        """Perform one event, or advance to the first timeout."""
        end_ms = min((waiter.end_ms for waiter in self._waiters if waiter.end_ms is not None), default=None)
        if end_ms is None:
            if not self._scheduler.step() or self._scheduler.now_ms - since_ms > STUCK_MS:
                self.stop("all threads wait for something that never happens")
        else:
            before = self._scheduler.events
            self._scheduler.run_until(lambda: self._scheduler.events > before, end_ms=end_ms)


class _Task:
    def __init__(self, stage: SimulatedStage) -> None:
        self._stage = stage
        self.is_done = False
        self.error: BaseException | None = None

    def result(self) -> None:
        self._stage.wait(lambda: self.is_done, None)
        if self.error is not None:
            raise self.error


class _Event:
    def __init__(self, stage: SimulatedStage) -> None:
        self._stage = stage
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._stage.wait(lambda: self._is_set, None if timeout is None else max(1, round(timeout * 1000)))
