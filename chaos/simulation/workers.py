"""Work on numbers by several processes; what comes of it comes in the order of the numbers.

Which process works on which number, and which of them is quicker, shows nowhere: the same numbers give the same
results, in the same order, whatever the number of workers. Numbers are handed out ascending and not far ahead of the
first one that is not done, so neither a long range nor a slow number fills the memory. A worker is replaced by a new
process after so many numbers.

No orphan: a worker ends when its parent is gone, and all end when the results are closed. Ctrl-C is the parent's alone.
"""

import itertools
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, Generic, TypeVar

from linearizability.isolated_python import isolate_children

T = TypeVar("T")
Opening = Callable[[], AbstractContextManager[Callable[[int], T]]]
"""What a worker does, once, in its process: gives the function that works on a number. A value that can be pickled."""

AHEAD_PER_WORKER: Final = 32
RECYCLED_AFTER: Final = 5_000
_END_TIMEOUT_S: Final = 5.0


class WorkerError(Exception):
    """A worker failed, or died, in a way that says nothing of what it worked on. The message names that."""


def in_order(
    opening: Opening[T],
    numbers: Iterator[int],
    *,
    workers: int,
    limit_s: float,
    overdue: Callable[[int], T],
    recycled_after: int = RECYCLED_AFTER,
    names: Callable[[int], str] = "seed {}".format,
) -> Generator[T, None, None]:
    """What comes of each number, in order.

    :param numbers: drawn from only as fast as they are worked on.
    :param limit_s: a number that takes longer is given up, with its process; `overdue` says what came of it.
    :param names: what a number stands for, in an error.

    Raises `WorkerError`.
    """
    pool = _Pool(opening, numbers, workers, limit_s, overdue, recycled_after, names)
    try:
        yield from pool.results()
    finally:
        pool.end()


@dataclass(eq=False, slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    place: int | None = None
    """The place of what it works on, in the order of results; null while it has nothing to do."""
    number: int = 0
    since_s: float = math.inf
    """When it began with that; a process that is still starting has not."""
    is_ready: bool = False
    done: int = 0

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join(_END_TIMEOUT_S)


@dataclass(eq=False, slots=True)
class _Pool(Generic[T]):
    opening: Opening[T]
    numbers: Iterator[int]
    size: int
    limit_s: float
    overdue: Callable[[int], T]
    recycled_after: int
    names: Callable[[int], str]
    places: Iterator[int] = field(default_factory=itertools.count)
    workers: list[_Worker] = field(default_factory=list)
    waiting: dict[int, T] = field(default_factory=dict)
    """Results by place that others come before."""

    def results(self) -> Generator[T, None, None]:
        next_place = 0
        while True:
            self._hand_out()
            while next_place in self.waiting:
                yield self.waiting.pop(next_place)
                next_place += 1
            busy = [worker for worker in self.workers if worker.place is not None]
            if busy:
                self._await(busy)
            elif next_place not in self.waiting:
                return

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def _hand_out(self) -> None:
        """Give every idle worker a number, where there are any; start workers only for numbers that there are."""
        busy = [worker for worker in self.workers if worker.place is not None]
        idle = [worker for worker in self.workers if worker.place is None]
        ahead = len(busy) + len(self.waiting)
        while len(busy) < self.size and ahead < AHEAD_PER_WORKER * self.size:
            number = next(self.numbers, None)
            if number is None:
                return
            worker = idle.pop() if idle else self._start()
            worker.place, worker.number = next(self.places), number
            worker.since_s = time.monotonic() if worker.is_ready else math.inf
            worker.connection.send(number)
            busy.append(worker)
            ahead += 1

    def _start(self) -> _Worker:
        isolate_children()
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # which unblocks signals when it starts
        connection, others = context.Pipe()
        process = context.Process(target=_work, args=(others, self.opening), daemon=True)
        with _uninterrupted():
            process.start()
        others.close()
        worker = _Worker(process, connection)
        self.workers.append(worker)
        return worker

    def _await(self, busy: list[_Worker]) -> None:
        """Take in what has come, and give up what takes too long."""
        first_due_s = min(worker.since_s for worker in busy) + self.limit_s
        timeout_s = None if first_due_s == math.inf else max(0.0, first_due_s - time.monotonic())
        ready = wait([worker.connection for worker in busy], timeout_s)
        for worker in busy:
            if worker.connection in ready:
                self._take(worker)
            elif time.monotonic() - worker.since_s >= self.limit_s:
                self._conclude(worker, self.overdue(worker.number))
                self._replace(worker)

    def _take(self, worker: _Worker) -> None:
        try:
            failed, value = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(_END_TIMEOUT_S)
            code = worker.process.exitcode
            raise WorkerError(f"{self.names(worker.number)}: its process died with exit code {code}") from None
        if failed is not None:
            raise WorkerError(f"{self.names(worker.number)}: {failed}")
        if not worker.is_ready:
            worker.is_ready, worker.since_s = True, time.monotonic()
            return
        self._conclude(worker, value)
        worker.done += 1
        if worker.done >= self.recycled_after:
            self._replace(worker)

    def _conclude(self, worker: _Worker, value: T) -> None:
        assert worker.place is not None
        self.waiting[worker.place] = value
        worker.place = None

    def _replace(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.end()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes started inside never hear of Ctrl-C, from their first moment on: a blocked signal is inherited."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, opening: Opening[object]) -> None:
    """The whole life of a worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with opening() as work:
            connection.send((None, None))
            while True:
                number = connection.recv()
                connection.send((None, work(number)))
    except (EOFError, OSError):
        return
    except Exception:  # noqa: BLE001  the parent raises it
        connection.send((traceback.format_exc(), None))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
