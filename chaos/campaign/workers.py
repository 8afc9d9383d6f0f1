"""Process pool of a campaign: several processes work on items, and the results are returned in the order of items.

The same items give the same results in the same order, for any number of workers. Items are handed out in their order.
The pool stays at most `AHEAD_PER_WORKER` items per worker ahead of the first item without a result, so that the memory
is bounded even if that item is slow. After a number of items, a worker is replaced by a new process.

An item is overdue when its worker has used more processor time for it than the limit. Therefore no item fails because
the machine is busy, or because the command was stopped by Ctrl-Z. A blocked worker uses no processor time. Its item is
overdue after `_BLOCKED_FACTOR` times the limit in wall-clock time.

No worker outlives its parent, and all workers end when the generator of results is closed. Workers block SIGINT, so
that Ctrl-C interrupts only the parent. The parent still returns the results that it has received.
"""

import itertools
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Generic, TypeVar

import psutil

from linearizability.isolated_python import isolate_children

A = TypeVar("A")
T = TypeVar("T")

AHEAD_PER_WORKER: Final = 32
RECYCLED_AFTER: Final = 5_000
_END_TIMEOUT_S: Final = 5.0
_CHECK_PERIOD_S: Final = 1.0
_BLOCKED_FACTOR: Final = 20
_NO_ITEM: Final = object()


class WorkerError(Exception):
    """The work on an item raised an exception, or its process died without `Job.died`. The message names the item."""


@dataclass(frozen=True, slots=True)
class Job(Generic[A, T]):
    """Work on items, and its limits. `work` and `inside` run in the worker processes, and must be picklable.

    :param work: returns the result of an item.
    :param limit_s: processor time in seconds after which an item is overdue, and its worker process is killed.
    :param overdue: returns the result of an overdue item.
    :param died: returns the result of an item whose worker process died, from the item and the exit code. If it is
        None, the death is a `WorkerError`.
    :param inside: context that a worker enters before its first item.
    :param recycled_after: number of items after which a new process replaces a worker.
    :param preloaded: modules that are imported once, before the workers are forked, so that all workers share them.
    :param name: returns the name of an item, for errors.
    """

    work: Callable[[A], T]
    limit_s: float
    overdue: Callable[[A], T]
    died: Callable[[A, int | None], T] | None = None
    inside: Callable[[], AbstractContextManager[None]] = nullcontext
    recycled_after: int = RECYCLED_AFTER
    preloaded: Sequence[str] = ()
    name: Callable[[A], str] = "seed {}".format


def in_order(job: Job[A, T], items: Iterator[A], workers: int) -> Generator[T, None, None]:
    """Yield the result of each item, in the order of items. Raises `WorkerError`.

    After a KeyboardInterrupt, the results that were received are yielded. Then the KeyboardInterrupt is raised again.

    :param workers: maximum number of worker processes.
    """
    pool = _Pool(job, items, workers)
    try:
        yield from pool.results()
    except KeyboardInterrupt:
        yield from (pool.waiting[index] for index in sorted(pool.waiting))
        raise
    finally:
        pool.end()


@dataclass(eq=False, slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    index: int | None = None
    """Index of the worker's item in the order of items; None while the worker is idle."""
    item: Any = None
    is_ready: bool = False
    """Whether the process has started and has entered the context `Job.inside`."""
    done: int = 0
    waited_s: float = 0.0
    """Wall-clock time since the start of the item, without the time for which the parent was stopped."""
    processor_s: float = 0.0
    """Processor time that the process had used at the start of the item."""

    def begin(self) -> None:
        """Start to measure the time of an item."""
        self.waited_s, self.processor_s = 0.0, self._processor_s()

    def is_overdue(self, limit_s: float) -> bool:
        """Whether the item has taken too long."""
        if self.waited_s < limit_s:
            return False
        return self._processor_s() - self.processor_s >= limit_s or self.waited_s >= _BLOCKED_FACTOR * limit_s

    def _processor_s(self) -> float:
        """Return the processor time of the process, or 0 if it has ended. `_take` then finds its connection closed."""
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return float(times.user + times.system)

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join(_END_TIMEOUT_S)


@dataclass(eq=False, slots=True)
class _Pool(Generic[A, T]):
    job: Job[A, T]
    items: Iterator[A]
    size: int
    indexes: Iterator[int] = field(default_factory=itertools.count)
    workers: list[_Worker] = field(default_factory=list)
    waiting: dict[int, T] = field(default_factory=dict)
    """Results, by index, that wait for the results of earlier items."""

    def results(self) -> Iterator[T]:
        next_index = 0
        while True:
            self._hand_out()
            while next_index in self.waiting:
                yield self.waiting.pop(next_index)
                next_index += 1
            busy = [worker for worker in self.workers if worker.index is not None]
            if busy:
                self._await(busy)
            elif next_index not in self.waiting:
                return

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def _hand_out(self) -> None:
        """Hand out the next items, to idle workers first and then to new ones."""
        busy = [worker for worker in self.workers if worker.index is not None]
        idle = [worker for worker in self.workers if worker.index is None]
        ahead = len(busy) + len(self.waiting)
        while len(busy) < self.size and ahead < AHEAD_PER_WORKER * self.size:
            item = next(self.items, _NO_ITEM)
            if item is _NO_ITEM:
                return
            worker = idle.pop() if idle else self._start()
            worker.index, worker.item = next(self.indexes), item
            worker.begin()
            worker.connection.send(worker.item)
            busy.append(worker)
            ahead += 1

    def _start(self) -> _Worker:
        isolate_children()
        context: Any = multiprocessing.get_context("forkserver" if self.job.preloaded else "spawn")
        if self.job.preloaded:
            context.set_forkserver_preload(list(self.job.preloaded))
        resource_tracker.ensure_running()  # not inside `_uninterrupted`: starting the tracker unblocks SIGINT
        connection, others = context.Pipe()
        process = context.Process(target=_work, args=(others, self.job.work, self.job.inside), daemon=True)
        with _uninterrupted():
            process.start()
        others.close()
        worker = _Worker(process, connection)
        self.workers.append(worker)
        return worker

    def _await(self, busy: list[_Worker]) -> None:
        """Wait for results, receive them, and replace the workers of overdue items."""
        began_s = time.monotonic()
        ready = wait([worker.connection for worker in busy], _CHECK_PERIOD_S)
        passed_s = min(time.monotonic() - began_s, 2 * _CHECK_PERIOD_S)
        for worker in busy:
            if worker.connection in ready:
                self._take(worker)
                continue
            worker.waited_s += passed_s
            if worker.is_ready and worker.is_overdue(self.job.limit_s):
                self._conclude(worker, self.job.overdue(worker.item))
                self._replace(worker)

    def _take(self, worker: _Worker) -> None:
        try:
            failed, value = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(_END_TIMEOUT_S)
            code = worker.process.exitcode
            if self.job.died is None:
                name = self.job.name(worker.item)
                raise WorkerError(f"{name}: its process died with exit code {code}") from None
            self._conclude(worker, self.job.died(worker.item, code))
            self._replace(worker)
            return
        if failed is not None:
            raise WorkerError(f"{self.job.name(worker.item)}: {failed}")
        if not worker.is_ready:
            worker.is_ready = True
            worker.begin()
            return
        self._conclude(worker, value)
        worker.done += 1
        if worker.done >= self.job.recycled_after:
            self._replace(worker)

    def _conclude(self, worker: _Worker, value: T) -> None:
        assert worker.index is not None
        self.waiting[worker.index] = value
        worker.index = None

    def _replace(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.end()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block SIGINT inside the context. A process that is started inside inherits the signal mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    connection: Connection, work: Callable[[Any], object], inside: Callable[[], AbstractContextManager[None]]
) -> None:
    """Run a worker until its parent closes the connection."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with inside():
            connection.send((None, None))
            while True:
                item = connection.recv()
                connection.send((None, work(item)))
    except (EOFError, OSError):
        return
    except Exception:  # noqa: BLE001  the parent raises it
        connection.send((traceback.format_exc(), None))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
