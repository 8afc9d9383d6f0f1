"""Follower of a history that is being written: it returns each row once, in the order of its table.

A flush of the writer creates numbered files. At its end the writer merges the files of each table into one, in their
order (`layout`, `compaction`). The follower stores its position in a table as a number of rows, because this number
stays valid when the files are merged. Each `poll` returns whole flushes of all tables, so that the rows returned so far
are a valid history. Unfinished operations are returned when they end, or when the writer is closed. If the writer is
killed, they are never returned.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.errors import HistoryError, one_line
from linearizability.history.schema import SCHEMAS


class Follower:
    """Follower of one run directory, which need not exist yet. Not thread-safe.

    :param seen: number of rows of each table that were returned before, for example by an earlier follower.
    """

    def __init__(self, run_dir: Path, seen: Mapping[str, int] | None = None) -> None:
        self._folder = run_dir / layout.HISTORY_FOLDER
        self._rows = {name: (seen or {}).get(name, 0) for name in SCHEMAS}
        self._closed: dict[str, tuple[int, int]] = dict.fromkeys(SCHEMAS, (0, 0))
        """Per table, the number of files whose rows were all returned, and their number of rows."""

    def poll(self) -> dict[str, pa.Table]:
        """Return the rows of each table that are new since the last call; a table without any is left out.

        Raises HistoryError for a file that cannot be read.
        """
        while self._folder.is_dir():
            try:
                found = self._read_flushes()
            except _FilesChangedError:
                continue
            for name, table in found.items():
                self._rows[name] += table.num_rows
            return found
        return {}

    def _read_flushes(self) -> dict[str, pa.Table]:
        last = None if self._has_ended() else layout.last_whole_flush(self._folder)
        found = {}
        for name in SCHEMAS:
            tables = list(self._new_rows(name, last))
            if tables:
                found[name] = pa.concat_tables(tables)
        return found

    def _has_ended(self) -> bool:
        """Whether there are no further rows: from now on files are only merged."""
        return not layout.has_journal(self._folder) or layout.table_file(self._folder, "operations").exists()

    def _new_rows(self, name: str, last: str | None) -> Iterator[pa.Table]:
        """Yield a table's new rows up to the flush `last`, or all of them if `last` is None: the history has ended."""
        paths = layout.table_files(self._folder, name)
        is_merged = paths == [layout.table_file(self._folder, name)]
        if is_merged and last is not None:
            raise _FilesChangedError
        done, before = (0, 0) if is_merged else self._closed[name]
        fresh = False
        for path in paths[done:]:
            if last is not None and path.stem > last:
                return
            rows = _read(path, pq.read_metadata).num_rows
            seen = min(self._rows[name] - before, rows)
            if seen < rows:
                yield _read(path, partial(pq.read_table, schema=SCHEMAS[name], partitioning=None)).slice(seen)
                before, fresh = self._rows[name], True
            elif not (is_merged or fresh):
                done, before = done + 1, before + rows
                self._closed[name] = done, before


class _FilesChangedError(Exception):
    """Signal that a file was removed or added while others were read, so that they must be read again."""


def _read(path: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except FileNotFoundError:
        raise _FilesChangedError from None
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path}: cannot be read: {one_line(error)}") from None
