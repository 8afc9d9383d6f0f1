"""Runs tasks, here or in processes of our own: what an engine is to everything that can be cut into tasks.

A task is a function without arguments that can be pickled; answers come in the order of the tasks. A worker process is
this interpreter with nothing of the caller's program in it: it imports the task's module and no `__main__`, talks over
a socket of its own, and ends when that closes, so none is left when its parent is gone.
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
from linearizability.shards.answers import packed, unpacked

Answer = TypeVar("Answer")
Task = Callable[[], Answer]
_ROOT: Final = Path(__file__).parents[2]


class Run(Protocol):
    """What runs tasks."""

    def __call__(self, tasks: Sequence[Task[Answer]], /) -> Iterator[Answer]:
        """The answers in order. Raises what a task raised, if that is a HistoryError or an OSError, in its words."""


def run_here(tasks: Sequence[Task[Answer]]) -> Iterator[Answer]:
    """One after the other, in this process."""
    for task in tasks:
        yield task()


class WorkerError(Exception):
    """A worker process failed in a way that says nothing of the history."""


class WorkerRefusedError(WorkerError, OSError):
    """The system refused a worker process something, a full disk say: an OSError here as it is one there."""


class Processes:
    """Worker processes, started with the first tasks."""

    def __init__(self, count: int | None = None) -> None:
        self._count = count or len(os.sched_getaffinity(0))
        self._workers: list[tuple[subprocess.Popen[bytes], Connection]] = []

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
        """Start what is missing; they come up while the caller goes on."""
        while len(self._workers) < self._count:
            self._workers.append(_start())

    def __call__(self, tasks: Sequence[Task[Answer]], /) -> Iterator[Answer]:
        """As `Run` has it."""
        self.start()
        idle = [connection for _, connection in self._workers]
        running: dict[Connection, int] = {}
        done: dict[int, Any] = {}
        given = 0
        for wanted in range(len(tasks)):
            while wanted not in done:
                # Not far ahead of the first that is not done: answers wait in memory.
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


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            module_command(_ROOT, "linearizability.shards.worker", str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the parent's alone
        )
    return process, ours


def _received(connection: Connection) -> Any:
    try:
        kind, answer = unpacked(connection.recv_bytes())
    except (EOFError, ConnectionResetError):
        raise WorkerError("a worker process ended: killed, or out of memory") from None
    if kind == "history":
        raise HistoryError(answer)
    if kind == "refused":
        raise WorkerRefusedError(*answer)
    if kind == "error":
        raise WorkerError(answer)
    return answer


def work() -> None:
    """What a worker process does until its parent is gone."""
    connection = Connection(int(sys.argv[1]))
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_answered(connection.recv_bytes()))


def _answered(task: bytes) -> bytes:
    try:
        return packed(("answer", pickle.loads(task)()))  # noqa: S301 - from our own parent
    except HistoryError as error:
        return packed(("history", str(error)))
    except OSError as error:
        told = (error.errno, error.strerror, error.filename) if error.strerror else (one_line(error),)
        return packed(("refused", told))
    except pa.ArrowException as error:
        return packed(("refused", (one_line(error),)))
    except Exception as error:  # noqa: BLE001 - the parent tells it
        return packed(("error", f"a worker process failed: {error!r}"))
