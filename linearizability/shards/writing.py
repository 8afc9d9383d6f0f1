"""Lays a history out while it is written: whoever writes public tables deals the same rows to their logs in passing.

Rows wait until there are many, so that of a small history, which is judged without a layout, little lies on disk while
it is written, and nothing afterwards; and until their operation is there, which comes at about the same time, when it
has ended. All that `laying_out` holds a history to is held here too; of one that breaks a rule no layout is made.
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
from linearizability.shards.laying_out import SPILL_FOLDER, draft_folder, published, removed_on_error, told_of
from linearizability.shards.manifest import SHARDS_FOLDER, fingerprint_of
from linearizability.shards.running import Run, run_here
from linearizability.shards.spilling import CHUNK_ROWS, Dealer, Spill

RECORDED_ROWS: Final = 262_144
"""Rows that wait in memory, some 40 MB of them, beside what else a process does that records."""
_TABLE_ROWS: Final = 100
"""What a waiting table weighs besides its rows: one of few rows takes some 15 KB, and an idle client flushes many."""


class LayoutWriter:
    """The layout of one run directory, whose tables are being written. Not thread-safe."""

    def __init__(self, run_dir: Path, chunk_rows: int = CHUNK_ROWS) -> None:
        self.records = 0
        """How many were added."""
        self._final = run_dir / HISTORY_FOLDER / SHARDS_FOLDER
        self._chunk_rows = chunk_rows
        self._folder: Path | None = None
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}
        self._waiting_rows = 0
        self._operations = SCHEMAS["operations"].empty_table().select(OPERATION_FIELDS)
        """Those dealt last: rows of theirs may still come."""
        self._spills: list[Spill] = []

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Rows more of the public tables; strings may be dictionaries. Raises HistoryError where the disk refuses."""
        for name, table in tables.items():
            if table.num_rows:
                self._waiting[name].append(table.cast(SCHEMAS[name]))
                self._waiting_rows += table.num_rows + _TABLE_ROWS
        self.records += tables["records"].num_rows if "records" in tables else 0
        if self._waiting_rows >= self._chunk_rows:
            self._deal()

    def finish(self, history: History, run: Run) -> bool:
        """Make the layout of a history that has been written, and has just what was added. Whether there is one.

        Raises HistoryError where the disk refuses.
        """
        self._deal(last=True)
        folder, final = self._draft(), self._final
        self._folder = None
        with removed_on_error(folder):
            told = told_of(history, run, self._spills)
            if not told.keeps_rules:
                shutil.rmtree(folder)
                return False
            layout, is_lawful = laying_out.settled(
                fingerprint_of(history),
                run,
                folder,
                self._spills,
                topics=told.topics,
                part_rows=laying_out.PART_ROWS,
            )
            if is_lawful and published(layout, final).folder == final:
                return True
            shutil.rmtree(folder)
            return False

    def discard(self) -> None:
        """Leave nothing behind."""
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
    """A layout writer in a thread, at most one `add` behind. A context manager: left by an error, it leaves nothing."""

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
        """As `LayoutWriter.add`, whose error comes with the next call."""
        self.wait()
        self._last = self._thread.submit(self.layout.add, tables)

    def wait(self) -> None:
        """Until all that was added is dealt."""
        if self._last is not None:
            self._last.result()


class LargeLayout:
    """Lays out what a `HistoryWriter` records, beside it, and keeps that if the history has become large.

    Where anything fails there is no layout, and who judges the history makes one.
    """

    def __init__(self, run_dir: Path, large_rows: int, chunk_rows: int = RECORDED_ROWS) -> None:
        self._run_dir, self._large_rows = run_dir, large_rows
        self._thread = LayoutThread(LayoutWriter(run_dir, chunk_rows))
        self._failed = False

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """As `history.writer.Beside` has it."""
        try:
            if not self._failed:
                self._thread.add(tables)
        except Exception:  # noqa: BLE001 - what can be made again must not cost a history
            self._failed = True

    def close(self, *, written: bool) -> None:
        """As `history.writer.Beside` has it."""
        layout = self._thread.layout
        try:
            with self._thread:
                self._thread.wait()
            if written and not self._failed and layout.records >= self._large_rows:
                layout.finish(open_history(self._run_dir), run_here)
        except Exception:  # noqa: BLE001 - as above
            self._failed = True
        layout.discard()
