"""Writer of a history during a run: if the process is killed, at most the last second of the history is lost.

Callers put events into one queue: the beginning or the end of an operation or a fault, or other rows. Every
`FLUSH_INTERVAL_S`, a thread takes all events from the queue and writes them as Parquet files, by the rules of `layout`.
Therefore the events on disk are always a prefix of all events: there is no read without the operation that sent the
record, and no effect of a fault without the fault. Only that thread writes rows, so a KeyboardInterrupt in a caller's
thread loses none.

Memory is bounded: a caller waits if `QUEUE_ROWS_MAX` rows are queued. Files are flushed to the operating system but not
synced, so they do not survive a power cut of the test machine.
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
"""The time between two flushes. Together with the duration of a flush, it should be well below a second."""

QUEUE_ROWS_MAX: Final = 65_536
"""The number of queued rows at which callers wait for the disk.

These rows take about 20 MB as Python objects, and the flush in progress may hold as many again.
"""

_TABLES_BEFORE_OPERATIONS: Final = tuple(name for name in SCHEMAS if name != "operations")


class Unfinished(Protocol):
    """An operation or a fault that has begun and not ended. Compared by identity."""

    def rows(self) -> Sequence[Rows | Block]:
        """Return its rows if it never ends."""


class FlushListener(Protocol):
    """Listener that gets the rows of each flush after its files are written. Its methods raise nothing."""

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add the rows of one flush, by table."""

    def close(self, *, written: bool) -> None:
        """Handle the end of the writer. `written` is whether the whole history was written."""


class _Event(NamedTuple):
    """Entry of the queue: rows, and the operation or fault that has begun or ended, if any."""

    rows: Sequence[Rows | Block] = ()
    begins: Unfinished | None = None
    ends: Unfinished | None = None


class HistoryWriter:
    """The writer of one run directory. Thread-safe; every call may raise HistoryError for disk errors."""

    def __init__(self, run_dir: Path, run_info: RunInfo, listener: FlushListener | None = None) -> None:
        """Create `run_dir` if needed, with an incomplete `run.json`. Raises HistoryError if it contains a run."""
        self._listener = listener
        self.run_dir: Final = run_dir
        self._history_dir: Final = run_dir / layout.HISTORY_FOLDER
        self._run = dataclasses.replace(run_info, complete=False)
        self._run_lock = threading.Lock()
        self._queue: deque[_Event] = deque()
        self._queued_rows = 0
        # `with` takes a plain lock in one step; Ctrl-C inside a condition's `__enter__` would leave it locked.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._error: HistoryError | None = None
        self._flusher = _Flusher(self._history_dir, listener)
        if (run_dir / RUN_FILE).exists() or self._history_dir.exists():
            raise HistoryError(f"{run_dir}: already contains a run; name another directory")
        # The first conversion of a list makes pyarrow import pandas, if it is installed. That takes a second, too long
        # for a flush.
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
        """Add rows, each a mapping of columns; an omitted column is null."""
        if rows:
            self.append(Rows(table, rows))

    def begin(self, unfinished: Unfinished) -> None:
        """Record that an operation or a fault has begun.

        If the process is killed before `end`, the history has the rows `unfinished.rows()`.
        """
        self._put(_Event(begins=unfinished), 1)

    def end(self, unfinished: Unfinished, rows: Sequence[Rows | Block]) -> None:
        """Record that an operation or a fault has ended, with its rows."""
        self._put(_Event(rows, ends=unfinished), sum(part.length for part in rows))

    def set_topic(self, name: str, properties: Mapping[str, str]) -> None:
        """Add a topic with its properties to `run.json`, or replace the properties of a topic there."""
        with self._run_lock:
            topics = {**self._run.topics, name: dict(properties)}
            self._rewrite_run(dataclasses.replace(self._run, topics=topics))

    def set_client(self, process: int, properties: Mapping[str, str]) -> None:
        """Add a client with its properties to `run.json`, or replace the properties of a client there."""
        with self._run_lock:
            clients = {**self._run.clients, process: dict(properties)}
            self._rewrite_run(dataclasses.replace(self._run, clients=clients))

    def close(self, *, complete: bool = True) -> None:
        """Write the remaining rows, merge each table into one file, and mark in `run.json` whether the run is complete.

        Unfinished operations are written as info, unfinished faults as not healed. Idempotent.
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
            if self._listener is not None:
                self._listener.close(written=written)

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
        """Queue one event, and wait while the queue is full.

        The event is queued by a single append, so that after an interrupt either all of it is queued or nothing.
        """
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
        except Exception as error:  # noqa: BLE001 - callers would wait for a thread that ended silently
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
    """State of the thread: unfinished operations and faults, their journals, and the number of the next flush."""

    def __init__(self, history_dir: Path, listener: FlushListener | None) -> None:
        self._history_dir = history_dir
        self._listener = listener
        self._buffers = {name: TableBuffer(name) for name in SCHEMAS}
        self._unfinished: dict[Unfinished, int | None] = {}
        """For each operation or fault that has not ended, the number of the flush whose journal has it, if any."""
        self._journaled: Counter[int] = Counter()
        """By number of a flush, how many operations and faults of its journal have not ended."""
        self._number = 0

    def flush(self, events: Sequence[_Event]) -> None:
        """Write the events taken from the queue: the journal first, and `operations` last.

        Then remove each journal whose operations and faults have all ended.
        """
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
        """Write the last events, and unfinished operations and faults."""
        self._apply(events)
        for unfinished in self._unfinished:
            self._add(unfinished.rows())
        if any(self._buffers.values()):
            self._write_parts()

    def _apply(self, events: Sequence[_Event]) -> list[int]:
        """Sort events into buffers. Return, for each ended operation or fault in a journal, the journal's number."""
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
        # Last, and even without rows: it marks this flush as whole.
        tables["operations"] = self._buffers["operations"].take()
        for name, table in tables.items():
            self._write(layout.part_file(self._history_dir, name, self._number), table)
        if self._listener is not None:
            self._listener.add(tables)

    def _write(self, path: Path, table: pa.Table) -> None:
        """Write a file atomically."""
        draft = self._history_dir / layout.JOURNAL_FOLDER / "part.tmp"
        pq.write_table(table, draft)
        path.parent.mkdir(exist_ok=True)
        draft.replace(path)


@contextlib.contextmanager
def _disk_errors(run_dir: Path) -> Iterator[None]:
    """Convert disk errors into a HistoryNotWrittenError of one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else one_line(error)
        raise HistoryNotWrittenError(f"{run_dir}: cannot write the history: {reason}") from error
