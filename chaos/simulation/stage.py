"""Stage of a simulation: threads in virtual time, of which exactly one runs at a time.

A thread runs until it waits or ends. Then it resumes another thread: of those that can continue, the one that has
waited longest. While none can continue, it performs the next events of the simulation itself. So the threads run one
after the other, in the same order in each run of the program.

An exception is raised in all waiting threads when the simulation is stopped, when one of its events fails, and when no
thread can continue any more.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fixtures.clients.stage import Event, Task
from reference_broker.simulation.scheduler import Scheduler

STUCK_MS = 3_600_000
"""Virtual time after which the simulation is stopped if no thread has continued and none has a timeout."""


class StoppedError(Exception):
    """End of the simulation while threads wait. The message is the reason."""


@dataclass(eq=False, slots=True)
class _Waiter:
    """A waiting thread with its condition and, unless it is None, the virtual time of its timeout."""

    can_continue: Callable[[], bool]
    end_ms: int | None
    resumed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released when the thread is to continue."""


class SimulatedStage:
    """Scheduler of the threads of a simulation's clients."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiters: list[_Waiter] = []
        self._names = itertools.count(1)
        self._stopped = ""
        self._failure: Exception | None = None

    def start(self, action: Callable[[], None]) -> Task:
        """Create a thread. It starts to run when the calling thread waits."""
        task = _Task(self)
        waiter = _Waiter(lambda: True, None)
        self._waiters.append(waiter)

        def run() -> None:
            waiter.resumed.acquire()
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - raised by the task's `result`
                task.error = error
            task.is_done = True
            self._resume_next(None)

        threading.Thread(target=run, name=f"simulated {next(self._names)}", daemon=True).start()
        return task

    def event(self) -> Event:
        """Return a new event."""
        return _Event(self)

    def stop(self, reason: str = "the simulation was stopped") -> None:
        """Stop the simulation: `wait` raises `StoppedError` in all threads."""
        self._stopped = self._stopped or reason

    def wait(self, condition: Callable[[], bool], timeout_ms: int | None) -> bool:
        """Wait until the condition is true or the timeout has passed. Return whether the condition is true.

        Meanwhile, other threads run and virtual time advances.

        :raises StoppedError: the simulation was stopped. If an event of the simulation failed, its exception is raised
            instead.
        """
        if condition():
            return True
        end_ms = None if timeout_ms is None else self._scheduler.now_ms + timeout_ms
        waiter = _Waiter(condition, end_ms)
        self._waiters.append(waiter)
        if not self._resume_next(waiter):
            waiter.resumed.acquire()
        if self._failure is not None:
            raise self._failure
        if self._stopped:
            raise StoppedError(self._stopped)
        return condition()

    def _resume_next(self, own: _Waiter | None) -> bool:
        """Resume the next waiting thread. Return whether it is the calling thread, which then need not wait.

        :param own: the waiter of the calling thread; None if the thread ends.
        """
        since_ms = self._scheduler.now_ms
        while self._waiters:
            ready = next((waiter for waiter in self._waiters if self._is_ready(waiter)), None)
            if ready is not None:
                self._waiters.remove(ready)
                if ready is not own:
                    ready.resumed.release()
                return ready is own
            try:
                self._advance(since_ms)
            except Exception as error:  # noqa: BLE001 - a bug of the simulated code, raised in all threads
                self._failure = error
                self.stop("an event of the simulation failed")
        return False

    def _is_ready(self, waiter: _Waiter) -> bool:
        """Whether a waiting thread can continue."""
        has_timed_out = waiter.end_ms is not None and waiter.end_ms <= self._scheduler.now_ms
        return bool(self._stopped) or has_timed_out or waiter.can_continue()

    def _advance(self, since_ms: int) -> None:
        """Perform the next event, but not past the earliest timeout of a thread. Stop the simulation if it is stuck.

        :param since_ms: the virtual time at which the last thread stopped running.
        """
        end_ms = min((waiter.end_ms for waiter in self._waiters if waiter.end_ms is not None), default=None)
        if end_ms is None:
            if not self._scheduler.step() or self._scheduler.now_ms - since_ms > STUCK_MS:
                self.stop("all threads wait for something that never happens")
        else:
            events = self._scheduler.events
            self._scheduler.run_until(lambda: self._scheduler.events > events, end_ms=end_ms)


class _Task:
    """Thread of the stage, as `Task`."""

    def __init__(self, stage: SimulatedStage) -> None:
        self._stage = stage
        self.is_done = False
        self.error: BaseException | None = None

    def result(self) -> None:
        self._stage.wait(lambda: self.is_done, None)
        if self.error is not None:
            raise self.error


class _Event:
    """Event of the stage, as `threading.Event`. Its timeout is rounded to milliseconds of virtual time."""

    def __init__(self, stage: SimulatedStage) -> None:
        self._stage = stage
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._stage.wait(lambda: self._is_set, None if timeout is None else max(1, round(timeout * 1000)))
