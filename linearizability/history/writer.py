"""Writes a history to disk while the run goes: at most a second of it is lost when the process is killed.

Callers put events on one queue: an operation began, one ended, here are rows. A thread takes a prefix of that queue
every `FLUSH_INTERVAL_S` and writes it as closed Parquet files, after the rules of `layout`. As a flush is always a
prefix of what happened, what is on disk is a history that could have ended there: no read without the operation that
sent what it returned, no effect without its fault. Only that thread writes, so that a KeyboardInterrupt in a caller's
thread loses nothing.

Memory is bounded: a caller that is ahead of the disk by `QUEUE_ROWS_MAX` rows waits. Files are flushed to the
operating system, not synced: a power cut of the machine that runs the tests is not survived.
"""

import contextlib
import dataclasses
import os
import shutil
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.buffer import Block, Row, Rows, TableBuffer
from linearizability.history.compaction import compact
from linearizability.history.errors import HistoryError, HistoryNotWrittenError, one_line
from linearizability.history.run import RUN_FILE, RunInfo
from linearizability.history.schema import SCHEMAS

FLUSH_INTERVAL_S: Final = 0.3
"""Rows wait so long and then for the flush itself; both together are to stay well below a second."""

QUEUE_ROWS_MAX: Final = 65_536
"""Rows that may wait for the disk. About 20 MB as Python objects; as many again may be in the flush under way."""

_TABLES_BEFORE_OPERATIONS: Final = tuple(name for name in SCHEMAS if name != "operations")


class Unfinished(Protocol):
    """Something that has begun and not ended: an operation, a fault. Compared by identity."""

    def rows(self) -> Sequence[Rows | Block]:
        """What tells of it if it never ends."""


class Beside(Protocol):
    """Who follows what is written: given the rows of each flush once its files are there. It raises nothing."""

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """The rows of one flush, by table."""

    def close(self, *, written: bool) -> None:
        """There are no more; whether the history stands there as a whole now."""


class _Event(NamedTuple):
    """One entry of the queue."""

    rows: Sequence[Rows | Block] = ()
    begins: Unfinished | None = None
    ends: Unfinished | None = None


class HistoryWriter:
    """The writer of one run directory. Thread-safe; every call may raise HistoryError if the disk refuses."""

    def __init__(self, run_dir: Path, run_info: RunInfo, beside: Beside | None = None) -> None:
        """Create `run_dir` if need be, with `run.json` not complete. Raises HistoryError if it holds a run already."""
        self._beside = beside
        self.run_dir: Final = run_dir
        self._history_dir: Final = run_dir / layout.HISTORY_FOLDER
        self._run = dataclasses.replace(run_info, complete=False)
        self._run_lock = threading.Lock()
        self._queue: deque[_Event] = deque()
        self._queued_rows = 0
        # `with` takes a plain lock in one step; Ctrl-C inside a condition's `__enter__` would leave it locked for ever.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._error: HistoryError | None = None
        self._flusher = _Flusher(self._history_dir, beside)
        if (run_dir / RUN_FILE).exists() or self._history_dir.exists():
            raise HistoryError(f"{run_dir}: holds a run already; name another directory")
        # The first list that pyarrow converts makes it import pandas, if there is one: a second that no flush may take.
        pa.array([0])
        with _disk_errors(run_dir):
            (self._history_dir / layout.JOURNAL_FOLDER).mkdir(parents=True)
            self._run.write(run_dir)
        self._thread = threading.Thread(target=self._flush_until_closed, name="history-flusher", daemon=True)
        self._thread.start()

    def append(self, rows: Rows | Block) -> None:
        """Add rows."""
        self._put(_Event((rows,)), rows.length)

    def append_rows(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows given one by one, each a mapping of columns; a column left out is null."""
        if rows:
            self.append(Rows(table, rows))

    def begin(self, unfinished: Unfinished) -> None:
        """From now on, and until `end`, a killed run tells of this by `unfinished.rows()`."""
        self._put(_Event(begins=unfinished), 1)

    def end(self, unfinished: Unfinished, rows: Sequence[Rows | Block]) -> None:
        """It ended, and these are its rows."""
        self._put(_Event(rows, ends=unfinished), sum(part.length for part in rows))

    def set_topic(self, name: str, properties: Mapping[str, str]) -> None:
        """Add a topic, or the properties of one, to `run.json`."""
        with self._run_lock:
            topics = {**self._run.topics, name: dict(properties)}
            self._rewrite_run(dataclasses.replace(self._run, topics=topics))

    def set_client(self, process: int, properties: Mapping[str, str]) -> None:
        """Add a client, or the properties of one, to `run.json`."""
        with self._run_lock:
            clients = {**self._run.clients, process: dict(properties)}
            self._rewrite_run(dataclasses.replace(self._run, clients=clients))

    def close(self, *, complete: bool = True) -> None:
        """Write what is left, put each table into one file, and say in `run.json` whether the run ended by itself.

        What has not ended is written as it stands: an operation as info, a fault as not healed. Idempotent.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        written = False
        try:
            self._raise_error()
            with _disk_errors(self.run_dir):
                compact(self._history_dir)
                with self._run_lock:
                    self._rewrite_run(dataclasses.replace(self._run, complete=complete))
                shutil.rmtree(self._history_dir / layout.JOURNAL_FOLDER)
            written = True
        finally:
            if self._beside is not None:
                self._beside.close(written=written)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(complete=kind is None)

    def _rewrite_run(self, run: RunInfo) -> None:
        with _disk_errors(self.run_dir):
            run.write(self.run_dir)
        self._run = run

    def _put(self, event: _Event, rows: int) -> None:
        """Queue one event: a single append, so that an interrupt leaves all of it or nothing."""
        with self._lock:
            self._raise_error()
            if self._closing:
                raise HistoryError(f"{self.run_dir}: the history is closed")
            self._queue.append(event)
            self._queued_rows += rows
            if self._queued_rows < QUEUE_ROWS_MAX:
                return
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._queued_rows < QUEUE_ROWS_MAX or self._error is not None)
            self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise HistoryError(str(self._error)) from self._error

    def _flush_until_closed(self) -> None:
        try:
            with _disk_errors(self.run_dir):
                while self._wait_for_work():
                    self._flusher.flush(self._take_queue())
                self._flusher.finish(self._take_queue())
        except HistoryError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a thread that died in silence would leave its callers waiting
            self._fail(HistoryError(f"{self.run_dir}: cannot write the history: {error!r}"))

    def _fail(self, error: HistoryError) -> None:
        with self._lock:
            self._error = error
            self._queue.clear()
            self._changed.notify_all()

    def _wait_for_work(self) -> bool:
        with self._lock:
            self._changed.wait_for(lambda: self._closing or self._queued_rows >= QUEUE_ROWS_MAX, FLUSH_INTERVAL_S)
            return not self._closing

    def _take_queue(self) -> Sequence[_Event]:
        with self._lock:
            events, self._queue = self._queue, deque()
            self._queued_rows = 0
            self._changed.notify_all()
            return events


class _Flusher:
    """The thread's own state: what is unfinished, in which journal it stands, and the number of the next flush."""

    def __init__(self, history_dir: Path, beside: Beside | None) -> None:
        self._history_dir = history_dir
        self._beside = beside
        self._buffers = {name: TableBuffer(name) for name in SCHEMAS}
        self._unfinished: dict[Unfinished, int | None] = {}
        self._journaled: Counter[int] = Counter()
        self._number = 0

    def flush(self, events: Sequence[_Event]) -> None:
        """Write one prefix of the queue: its journal first, `operations` last, then drop journals of no more use."""
        if not events:
            return
        ended = self._apply(events)
        self._write_journal()
        self._write_parts()
        self._journaled.subtract(ended)
        for number in [number for number, left in self._journaled.items() if left == 0]:
            del self._journaled[number]
            for name in layout.JOURNAL_TABLES:
                layout.journal_file(self._history_dir, name, number).unlink(missing_ok=True)
        self._number += 1

    def finish(self, events: Sequence[_Event]) -> None:
        """Write the last prefix, and what has not ended as it stands."""
        self._apply(events)
        for unfinished in self._unfinished:
            self._add(unfinished.rows())
        if any(self._buffers.values()):
            self._write_parts()

    def _apply(self, events: Sequence[_Event]) -> list[int]:
        """Sort events into buffers. Returns the journal of each ended thing that was in one."""
        ended = []
        for event in events:
            self._add(event.rows)
            if event.begins is not None:
                self._unfinished[event.begins] = None
            if event.ends is not None:
                number = self._unfinished.pop(event.ends)
                if number is not None:
                    ended.append(number)
        return ended

    def _add(self, rows: Sequence[Rows | Block]) -> None:
        for part in rows:
            self._buffers[part.table].add(part)

    def _write_journal(self) -> None:
        fresh = [unfinished for unfinished, number in self._unfinished.items() if number is None]
        if not fresh:
            return
        journal = {name: TableBuffer(name) for name in layout.JOURNAL_TABLES}
        for unfinished in fresh:
            self._unfinished[unfinished] = self._number
            for part in unfinished.rows():
                journal[part.table].add(part)
        for name, buffer in journal.items():
            if buffer:
                self._write(layout.journal_file(self._history_dir, name, self._number), buffer.take())
        self._journaled[self._number] = len(fresh)

    def _write_parts(self) -> None:
        tables = {name: self._buffers[name].take() for name in _TABLES_BEFORE_OPERATIONS if self._buffers[name]}
        # Last, and even without rows: it says that this flush is whole.
        tables["operations"] = self._buffers["operations"].take()
        for name, table in tables.items():
            self._write(layout.part_file(self._history_dir, name, self._number), table)
        if self._beside is not None:
            self._beside.add(tables)

    def _write(self, path: Path, table: pa.Table) -> None:
        """A file appears whole or not at all."""
        draft = self._history_dir / layout.JOURNAL_FOLDER / "part.tmp"
        pq.write_table(table, draft)
        path.parent.mkdir(exist_ok=True)
        draft.replace(path)


@contextlib.contextmanager
def _disk_errors(run_dir: Path) -> Iterator[None]:
    """Whatever the disk refuses becomes one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else one_line(error)
        raise HistoryNotWrittenError(f"{run_dir}: cannot write the history: {reason}") from error
