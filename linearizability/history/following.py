"""Follows a history while its writer is at work: each row once, in its table's order, as soon as its flush is whole.

A writer's flushes are closed files with numbers, and at the end it puts the files of a table into one, in their order
(`layout`, `compaction`). So a place in a table is a number of rows, which stays right when the files make way for one.
What had begun and not ended is told when it ends, or when its writer has ended.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.errors import HistoryError
from linearizability.history.schema import SCHEMAS

_LAST: Final = "operations"


class Follower:
    """The rows of one run directory, which need not be there yet. Not thread-safe."""

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / layout.HISTORY_FOLDER
        self._rows = dict.fromkeys(SCHEMAS, 0)
        self._parts = dict.fromkeys(SCHEMAS, 0)

    def news(self) -> dict[str, pa.Table]:
        """The rows of each table that are new since the last call; a table without any is left out.

        `operations` is the last: what a record says of its operation is there once that is. Raises HistoryError for a
        file that cannot be read.
        """
        found: dict[str, pa.Table] = {}
        for name in (*(name for name in SCHEMAS if name != _LAST), _LAST):
            tables = list(self._new_rows(name))
            if tables:
                found[name] = pa.concat_tables(tables)
                self._rows[name] += found[name].num_rows
        return found

    def _new_rows(self, name: str) -> Iterator[pa.Table]:
        """A table's new rows. Where its files make way while they are read, the next call finds them in the one."""
        if not self._folder.is_dir():
            return
        paths = layout.table_files(self._folder, name)
        whole = paths == [layout.table_file(self._folder, name)]
        skipped = self._rows[name] if whole else 0
        for path in paths if whole else paths[self._parts[name] :]:
            try:
                table = pq.read_table(path, schema=SCHEMAS[name], partitioning=None).slice(skipped)
            except FileNotFoundError:
                return
            except (OSError, pa.ArrowException) as error:
                raise HistoryError(f"{path}: cannot be read: {error}") from None
            self._parts[name] += not whole
            if table.num_rows:
                yield table
