"""Process pool of a campaign: several processes work on the items, and the results have the order of the items.

Scheduling has no influence on results: the same items give the same results, in the same order, for any number of
workers. Items are assigned in their order, but not far ahead of the earliest missing result, so neither an endless
iterator nor a slow item fills the memory.

The limit of an item is processor time, so no item fails because the machine is busy or because Ctrl-Z has stopped the
command. A worker that is blocked uses no processor time; it is killed when the elapsed time is `_BLOCKED_FACTOR` times
the limit.

No worker outlives its parent, and all workers end when the generator of results is closed. Workers block SIGINT: Ctrl-C
interrupts only the parent, which still returns the results that it has received.
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
    """Exception in the work, or death of a worker process if `Job.died` is None. The message names the item."""


@dataclass(frozen=True, slots=True)
class Job(Generic[A, T]):
    """Function that the workers run for each item, with its limits.

    `work` and `inside` run in a worker and must be picklable. All other functions run in the parent.

    :param work: function that a worker runs for each item.
    :param limit_s: maximum processor time of an item, in seconds; a worker that exceeds it is killed.
    :param overdue: returns the result of an item whose worker was killed because of the limit.
    :param died: returns the result of an item whose worker died, from the item and the exit code. If it is None, such a
        death raises `WorkerError`.
    :param inside: returns a context that a worker enters before its first item.
    :param recycled_after: number of items after which a new process replaces a worker.
    :param preloaded: modules that are imported once and shared by all workers, which are forked. If it is empty, the
        workers are spawned.
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
    """Yield the result of each item, in the order of items.

    After a KeyboardInterrupt, the results that have been received are yielded, then it is raised again.

    :param items: read lazily; the number of items without a yielded result is at most `AHEAD_PER_WORKER` per worker.
    :raises WorkerError: the work raised an exception, or a worker died and `job.died` is None.
    """
    pool = _Pool(job, items, workers)
    try:
        yield from pool.results()
    except KeyboardInterrupt:
        yield from (pool.received[index] for index in sorted(pool.received))
        raise
    finally:
        pool.end()


@dataclass(eq=False, slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    index: int | None = None
    """Index of the worker's item; None while the worker is idle."""
    item: Any = None
    is_ready: bool = False
    """Whether the process has started and has entered the context `Job.inside`."""
    done: int = 0
    elapsed_s: float = 0.0
    """Time since the start of the item, without the time for which the parent was stopped."""
    processor_start_s: float = 0.0
    """Processor time of the process at the start of the item."""

    def restart_clock(self) -> None:
        """Start to measure the time of an item."""
        self.elapsed_s, self.processor_start_s = 0.0, self._processor_s()

    def is_overdue(self, limit_s: float) -> bool:
        """Whether the item has used too much processor time, or the worker is blocked."""
        if self.elapsed_s < limit_s:
            return False
        used_s = self._processor_s() - self.processor_start_s
        return used_s >= limit_s or self.elapsed_s >= _BLOCKED_FACTOR * limit_s

    def _processor_s(self) -> float:
        """Return the processor time of the process, or 0 if it has ended; its connection is then closed, too."""
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
    received: dict[int, T] = field(default_factory=dict)
    """Results that are not yielded yet, by the index of the item."""

    def results(self) -> Iterator[T]:
        next_index = 0
        while True:
            self._assign_items()
            while next_index in self.received:
                yield self.received.pop(next_index)
                next_index += 1
            busy = [worker for worker in self.workers if worker.index is not None]
            if busy:
                self._await(busy)
            elif next_index not in self.received:
                return

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def _assign_items(self) -> None:
        """Send the next items to workers, to idle ones first and then to new ones."""
        busy = [worker for worker in self.workers if worker.index is not None]
        idle = [worker for worker in self.workers if worker.index is None]
        ahead = len(busy) + len(self.received)
        while len(busy) < self.size and ahead < AHEAD_PER_WORKER * self.size:
            item = next(self.items, _NO_ITEM)
            if item is _NO_ITEM:
                return
            worker = idle.pop() if idle else self._start()
            worker.index, worker.item = next(self.indexes), item
            worker.restart_clock()
            worker.connection.send(worker.item)
            busy.append(worker)
            ahead += 1

    def _start(self) -> _Worker:
        isolate_children()
        context: Any = multiprocessing.get_context("forkserver" if self.job.preloaded else "spawn")
        if self.job.preloaded:
            context.set_forkserver_preload(list(self.job.preloaded))
        resource_tracker.ensure_running()  # not inside `_sigint_blocked`: starting the tracker unblocks SIGINT
        own_end, worker_end = context.Pipe()
        process = context.Process(target=_work, args=(worker_end, self.job.work, self.job.inside), daemon=True)
        with _sigint_blocked():
            process.start()
        worker_end.close()
        worker = _Worker(process, own_end)
        self.workers.append(worker)
        return worker

    def _await(self, busy: list[_Worker]) -> None:
        """Receive messages from the workers, and end those whose items are overdue."""
        began_s = time.monotonic()
        ready = wait([worker.connection for worker in busy], _CHECK_PERIOD_S)
        # A longer time means that this process was stopped.
        passed_s = min(time.monotonic() - began_s, 2 * _CHECK_PERIOD_S)
        for worker in busy:
            if worker.connection in ready:
                self._receive(worker)
                continue
            worker.elapsed_s += passed_s
            if worker.is_ready and worker.is_overdue(self.job.limit_s):
                self._set_result(worker, self.job.overdue(worker.item))
                self._end_worker(worker)

    def _receive(self, worker: _Worker) -> None:
        """Receive one message of a worker: that it is ready, the result of its item, an exception, or its end."""
        try:
            error, value = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(_END_TIMEOUT_S)
            code = worker.process.exitcode
            if self.job.died is None:
                name = self.job.name(worker.item)
                raise WorkerError(f"{name}: its process died with exit code {code}") from None
            self._set_result(worker, self.job.died(worker.item, code))
            self._end_worker(worker)
            return
        if error is not None:
            raise WorkerError(f"{self.job.name(worker.item)}: {error}")
        if not worker.is_ready:
            worker.is_ready = True
            worker.restart_clock()
            return
        self._set_result(worker, value)
        worker.done += 1
        if worker.done >= self.job.recycled_after:
            self._end_worker(worker)

    def _set_result(self, worker: _Worker, value: T) -> None:
        assert worker.index is not None
        self.received[worker.index] = value
        worker.index = None

    def _end_worker(self, worker: _Worker) -> None:
        """End a worker; `_assign_items` starts a new one if there are more items."""
        self.workers.remove(worker)
        worker.end()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT. Processes that are started inside inherit the mask, so they block it from the beginning."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    connection: Connection, work: Callable[[Any], object], inside: Callable[[], AbstractContextManager[None]]
) -> None:
    """Run the work for each item that is received, until the parent closes the connection.

    Send pairs of an error and a value: first (None, None) when the worker is ready, then the result of each item. After
    an exception, send its traceback and end.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with inside():
            connection.send((None, None))
            while True:
                item = connection.recv()
                connection.send((None, work(item)))
    except (EOFError, OSError):
        return
    except Exception:  # noqa: BLE001 - the parent raises it
        connection.send((traceback.format_exc(), None))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
