"""Threads of a simulation: any number of them, of which exactly one runs, in virtual time.

A thread runs until it waits. Then whoever can go on does, the one that has waited longest first; where nobody can, the
simulation takes its next step, in the thread that waits. So programs written for threads run here one after the other,
the same way each time.

It ends under those who wait, all of them, when it is stopped, when one of its steps fails, and when everybody has
waited without end for something that does not come.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fixtures.clients.stage import Event, Task
from reference_broker.simulation.scheduler import Scheduler

STUCK_MS = 3_600_000
"""Virtual time in which nobody can go on, nor will have waited long enough: what they wait for does not come."""


class StoppedError(Exception):
    """The simulation has ended under those who wait. The message says why."""


@dataclass(eq=False, slots=True)
class _Waiter:
    """A thread that waits, and for what."""

    can_go_on: Callable[[], bool]
    end_ms: int | None
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class SimulatedStage:
    """Where a simulation's clients act."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiters: list[_Waiter] = []
        self._names = itertools.count(1)
        self._stopped = ""
        self._failure: Exception | None = None

    def start(self, action: Callable[[], None]) -> Task:
        """Let something run beside its caller, from when that waits."""
        task = _Task(self)
        waiter = _Waiter(lambda: True, None)
        self._waiters.append(waiter)

        def run() -> None:
            waiter.baton.acquire()
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the task gets it
                task.error = error
            task.is_done = True
            self._pass_on(None)

        threading.Thread(target=run, name=f"simulated {next(self._names)}", daemon=True).start()
        return task

    def event(self) -> Event:
        """A new one."""
        return _Event(self)

    def stop(self, why: str = "the simulation was stopped") -> None:
        """Whoever waits gets a `StoppedError`."""
        self._stopped = self._stopped or why

    def wait(self, condition: Callable[[], bool], timeout_ms: int | None) -> bool:
        """Let others, and time, go on until this is so; whether it is.

        Raises `StoppedError`; where a step of the simulation has failed, what that raised.
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
        """Let the next one run; the calling thread's own place may be that."""
        since_ms = self._scheduler.now_ms
        while self._waiters:
            ready = next((waiter for waiter in self._waiters if self._is_ready(waiter)), None)
            if ready is not None:
                self._waiters.remove(ready)
                if ready is not own:
                    ready.baton.release()
                return ready
            try:
                self._let_time_pass(since_ms)
            except Exception as error:  # noqa: BLE001 - a bug of what is simulated: everybody who waits gets it
                self._failure = error
                self.stop("a step of the simulation failed")
        return None

    def _is_ready(self, waiter: _Waiter) -> bool:
        is_late = waiter.end_ms is not None and waiter.end_ms <= self._scheduler.now_ms
        return bool(self._stopped) or is_late or waiter.can_go_on()

    def _let_time_pass(self, since_ms: int) -> None:
        """One event, or to the first end of somebody's patience."""
        end_ms = min((waiter.end_ms for waiter in self._waiters if waiter.end_ms is not None), default=None)
        if end_ms is None:
            if not self._scheduler.step() or self._scheduler.now_ms - since_ms > STUCK_MS:
                self.stop("everybody waits for something that does not come")
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
