"""Execution of tasks, in this process or in worker processes of our own.

A task is a function without arguments that can be pickled; results are returned in the order of the tasks. A worker
process runs the same interpreter without the caller's program: it imports the task's module, but no `__main__`. Tasks
and results are sent over a socket. When the parent process has ended, the socket is closed, and the worker ends after
its current task.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from linearizability.history.errors import HistoryError, one_line
from linearizability.isolated_python import module_command
from linearizability.shards.serialization import packed, unpacked

Result = TypeVar("Result")
Task = Callable[[], Result]
_ROOT: Final = Path(__file__).parents[2]


class Run(Protocol):
    """An executor of tasks."""

    def __call__(self, tasks: Sequence[Task[Result]], /) -> Iterator[Result]:
        """Yield the results in order. Raises a HistoryError or OSError of a task, with its message."""


def run_here(tasks: Sequence[Task[Result]]) -> Iterator[Result]:
    """Run tasks one after the other, in this process."""
    for task in tasks:
        yield task()


class WorkerError(Exception):
    """Failure of a worker process for a reason other than the history."""


class WorkerOSError(WorkerError, OSError):
    """OSError in a worker process, for example because of a full disk."""


class Processes:
    """Worker processes, started with the first tasks."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count or len(os.sched_getaffinity(0))
        self._workers: list[tuple[subprocess.Popen[bytes], Connection]] = []
        self._running: dict[Connection, int] = {}
        """Number of the task whose result each connection will receive."""

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *error: object) -> None:
        for process, connection in self._workers:
            connection.close()
            if error[0] is not None:
                process.kill()
        for process, _ in self._workers:
            process.wait()

    def start(self) -> None:
        """Start the missing workers; they start up while the caller continues."""
        while len(self._workers) < self._count:
            self._workers.append(_start())

    def __call__(self, tasks: Sequence[Task[Result]], /) -> Iterator[Result]:
        """See `Run`. Results of an earlier call that were not received are discarded."""
        self._end_running()
        self.start()
        idle = [connection for _, connection in self._workers]
        running = self._running
        done: dict[int, Any] = {}
        given = 0
        for wanted in range(len(tasks)):
            while wanted not in done:
                # Do not start tasks far ahead of the first unfinished one, because results wait in memory.
                while idle and given < len(tasks) and given < wanted + 4 * self._count:
                    connection = idle.pop()
                    connection.send_bytes(packed(tasks[given]))
                    running[connection] = given
                    given += 1
                for ready in wait(list(running)):
                    assert isinstance(ready, Connection)
                    done[running.pop(ready)] = _received(ready)
                    idle.append(ready)
            yield done.pop(wanted)

    def _end_running(self) -> None:
        """End the workers that still run tasks of an earlier call, which failed or whose iterator was abandoned."""
        for process, connection in self._workers:
            if connection in self._running:
                connection.close()
                process.kill()
                process.wait()
        self._workers = [worker for worker in self._workers if not worker[1].closed]
        self._running.clear()


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            module_command(_ROOT, "linearizability.shards.worker", str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # only the parent gets Ctrl-C
        )
    return process, ours


def _received(connection: Connection) -> Any:
    try:
        kind, result = unpacked(connection.recv_bytes())
    except (EOFError, ConnectionResetError):
        raise WorkerError("a worker process ended: killed, or out of memory") from None
    if kind == "history":
        raise HistoryError(result)
    if kind == "os":
        raise WorkerOSError(*result)
    if kind == "error":
        raise WorkerError(result)
    return result


def work() -> None:
    """Run the tasks of a worker process until its parent has ended."""
    connection = Connection(int(sys.argv[1]))
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_executed(connection.recv_bytes()))


def _executed(task: bytes) -> bytes:
    try:
        return packed(("result", pickle.loads(task)()))  # noqa: S301 - from our own parent
    except HistoryError as error:
        return packed(("history", str(error)))
    except OSError as error:
        arguments = (error.errno, error.strerror, error.filename) if error.strerror else (one_line(error),)
        return packed(("os", arguments))
    except pa.ArrowException as error:
        return packed(("os", (one_line(error),)))
    except Exception as error:  # noqa: BLE001 - the parent reports it
        return packed(("error", f"a worker process failed: {error!r}"))
