"""Writer of a layout while its history is recorded: each row of the public tables is also distributed to its log.

Rows are kept in memory and distributed many at a time. A row stays in memory until its operation has been added. The
rules that `laying_out` checks are checked here too; a history that breaks one gets no layout. A small history is judged
without a layout, so its draft is removed at the end; it takes little disk space while the history is recorded.
"""

import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

import numpy as np
import pyarrow as pa

from linearizability.anomalies.arrow import OPERATION_FIELDS, numbers
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.history.layout import HISTORY_FOLDER
from linearizability.history.reader import History, open_history
from linearizability.history.schema import SCHEMAS
from linearizability.shards import laying_out
from linearizability.shards.laying_out import SPILL_FOLDER, check_rules, draft_folder, published, removed_on_error
from linearizability.shards.manifest import SHARDS_FOLDER, fingerprint_of
from linearizability.shards.running import Run, run_here
from linearizability.shards.spilling import CHUNK_ROWS, Dealer, Spill

RECORDED_ROWS: Final = 262_144
"""The maximum number of rows that wait in memory (about 40 MB) in a recording process."""
_TABLE_ROWS: Final = 100
"""The overhead of a waiting table, as a number of rows: even a small table takes 15 KB, and each flush adds some."""


class LayoutWriter:
    """Writer of the layout of one run directory while its tables are written. Not thread-safe."""

    def __init__(self, run_dir: Path, chunk_rows: int = CHUNK_ROWS) -> None:
        self.records = 0
        """The number of added rows of `records`."""
        self._final = run_dir / HISTORY_FOLDER / SHARDS_FOLDER
        self._chunk_rows = chunk_rows
        self._folder: Path | None = None
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}
        self._waiting_rows = 0
        self._operations = SCHEMAS["operations"].empty_table().select(OPERATION_FIELDS)
        """The operations distributed last; more rows that belong to them may be added."""
        self._spills: list[Spill] = []

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add rows of the public tables; strings may be dictionary-encoded. Raises HistoryError for disk errors."""
        for name, table in tables.items():
            if table.num_rows:
                self._waiting[name].append(table.cast(SCHEMAS[name]))
                self._waiting_rows += table.num_rows + _TABLE_ROWS
        self.records += tables["records"].num_rows if "records" in tables else 0
        if self._waiting_rows >= self._chunk_rows:
            self._deal()

    def finish(self, history: History, run: Run) -> bool:
        """Create the layout of a written history that consists of the added rows. Return whether it could be created.

        Raises HistoryError for disk errors.
        """
        self._deal(last=True)
        folder, final = self._draft(), self._final
        self._folder = None
        with removed_on_error(folder):
            found = check_rules(history, run, self._spills)
            if not found.keeps_rules:
                shutil.rmtree(folder)
                return False
            layout, is_valid = laying_out.settled(
                fingerprint_of(history),
                run,
                folder,
                self._spills,
                topics=found.topics,
                part_rows=laying_out.PART_ROWS,
            )
            if is_valid and published(layout, final).folder == final:
                return True
            shutil.rmtree(folder)
            return False

    def discard(self) -> None:
        """Remove the draft of the layout."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _draft(self) -> Path:
        if self._folder is None:
            self._folder = draft_folder(self._final)
        return self._folder

    def _deal(self, *, last: bool = False) -> None:
        tables = {name: pa.concat_tables([SCHEMAS[name].empty_table(), *own]) for name, own in self._waiting.items()}
        self._waiting, self._waiting_rows = {name: [] for name in SCHEMAS}, 0
        fresh = tables["operations"].select(OPERATION_FIELDS)
        operations = pa.concat_tables([self._operations, fresh]).sort_by("op_id").combine_chunks()
        self._operations = fresh
        op_ids = numbers(operations["op_id"], 0)

        def between(low: int, high: int) -> pa.Table:
            begin, end = op_ids.searchsorted(low), op_ids.searchsorted(high, side="right")
            return operations.slice(begin, end - begin)

        folder = self._draft()
        with (
            removed_on_error(folder),
            Dealer(folder / SPILL_FOLDER, len(self._spills), compacted=lambda _: True) as dealer,
        ):
            for name in SHARD_FIELDS:
                table = tables[name]
                if "op_id" in table.column_names and not last:
                    known = np.isin(numbers(table["op_id"], 0), op_ids)
                    if not known.all():
                        self._waiting[name].append(table.filter(pa.array(~known)))
                        table = table.filter(pa.array(known))
                dealer.deal(name, table, between)
        self._spills.append(dealer.spill())


class LayoutThread:
    """A layout writer in a thread, at most one `add` behind. The context manager removes the draft after an error."""

    def __init__(self, layout: LayoutWriter) -> None:
        self.layout = layout
        self._thread = ThreadPoolExecutor(1, "laying-out")
        self._last: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._thread.shutdown()
        if kind is not None:
            self.layout.discard()

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add rows as `LayoutWriter.add` does; an error is raised by the next call."""
        self.wait()
        self._last = self._thread.submit(self.layout.add, tables)

    def wait(self) -> None:
        """Wait until the last `add` has ended, and raise its error if it failed."""
        if self._last is not None:
            self._last.result()


class LargeLayout:
    """Layout of a history, created while a `HistoryWriter` records it, and kept only if the history is large.

    If anything fails, there is no layout, and the first judgement creates one.
    """

    def __init__(self, run_dir: Path, large_rows: int, chunk_rows: int = RECORDED_ROWS) -> None:
        self._run_dir, self._large_rows = run_dir, large_rows
        self._thread = LayoutThread(LayoutWriter(run_dir, chunk_rows))
        self._failed = False

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """See `history.writer.FlushListener`."""
        try:
            if not self._failed:
                self._thread.add(tables)
        except Exception:  # noqa: BLE001 - the layout can be created again, so it must not stop the recording
            self._failed = True

    def close(self, *, written: bool) -> None:
        """See `history.writer.FlushListener`."""
        layout = self._thread.layout
        try:
            with self._thread:
                self._thread.wait()
            if written and not self._failed and layout.records >= self._large_rows:
                layout.finish(open_history(self._run_dir), run_here)
        except Exception:  # noqa: BLE001 - as above
            self._failed = True
        layout.discard()
