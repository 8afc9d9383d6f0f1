"""Reader of a history, finished or cut short, written by us or by another tool. It returns Arrow tables.

It accepts differences without meaning: the order of columns, further columns, a narrower or wider integer,
dictionaries, large strings, a column of nulls only, Kafka's -1 for an unknown offset or epoch. Everything else (a
missing column, a wrong type, an unreadable file, a number out of range) is an error in one clear line. `validate`
checks rows.
"""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.history import layout
from linearizability.history.conform import (
    check_row_count,
    check_schema,
    check_text_bytes,
    conform,
    has_types_of,
    without_unknown,
)
from linearizability.history.errors import HistoryError, NotARunError, one_line
from linearizability.history.files import check_regular
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS, empty_table

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["History", "HistoryError", "NotARunError", "history_of_tables", "open_history"]

BATCH_ROWS: Final = 131_072


@dataclass(frozen=True, slots=True)
class History:
    """A run's tables.

    `open_history` reads the footer of every file. If the run has a journal, it also reads the rows of the journal, and
    the op_ids and fault_ids of the other files.
    """

    run_dir: Path
    run: RunInfo
    _files: dict[str, tuple[Path, ...]]
    _unfinished: dict[str, pa.Table] = field(default_factory=dict)

    def files(self, name: str) -> tuple[Path, ...]:
        """Return the Parquet files of a table. These files and the rows of `unfinished` are the whole table."""
        return self._files[name]

    def unfinished(self, name: str) -> pa.Table:
        """Return the rows that are in none of `files`.

        These are the unfinished rows of a run with a journal, and all rows of a history in memory.
        """
        found = self._unfinished.get(name)
        return empty_table(SCHEMAS[name]) if found is None else found

    def count(self, name: str) -> int:
        """Return the number of rows of a table, by the footers of its files."""
        finished = sum(int(pq.read_metadata(path).num_rows) for path in self._files[name])
        return finished + int(self.unfinished(name).num_rows)

    def is_absent(self, name: str) -> bool:
        """Whether the run has no such table. If `positions` is absent, positions are derived."""
        return not self._files[name] and name not in self._unfinished

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table, or some columns of it, with exactly the types of `SCHEMAS`. Raises HistoryError."""
        return pa.concat_tables(self.batches(name, columns))

    def batches(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of `table` in order: pieces of up to `BATCH_ROWS` rows from the files, then `unfinished`.

        The last piece may be empty. Raises HistoryError.
        """
        wanted = list(columns) if columns is not None else SCHEMAS[name].names
        for path in self._files[name]:
            yield from _read(name, path, wanted)
        yield self.unfinished(name).select(wanted)

    def dataset(self, name: str) -> "ds.Dataset":
        """Return a table to query, with the types of `SCHEMAS`.

        A -1 that a tool wrote for unknown is not replaced in a file that already has exactly these types.
        """
        import pyarrow.dataset as ds  # imports pandas if it is installed, which takes a second

        schema = SCHEMAS[name]
        exact = [path for path in self._files[name] if has_types_of(schema, pq.read_schema(path))]
        converted = [
            table for path in self._files[name] if path not in exact for table in _read(name, path, schema.names)
        ]
        in_memory = pa.concat_tables([*converted, self.unfinished(name)])
        children = [ds.dataset([str(path) for path in exact], schema=schema, format="parquet")] if exact else []
        if in_memory.num_rows or not children:
            children.append(ds.dataset(in_memory))
        return children[0] if len(children) == 1 else ds.dataset(children)


def open_history(run_dir: Path) -> History:
    """Open the history of a run directory.

    Raises NotARunError if there is no run, or one of another format version; HistoryError if a file cannot be
    read or lacks a column.
    """
    run = RunInfo.read(run_dir)
    history_dir = run_dir / layout.HISTORY_FOLDER
    if os.path.lexists(history_dir) and not history_dir.is_dir():
        raise HistoryError(f"{history_dir}: not a directory")
    files = {name: tuple(layout.table_files(history_dir, name)) for name in SCHEMAS}
    for name, paths in files.items():
        for path in paths:
            check_schema(name, path, _footer(path))
    history = History(run_dir, run, files)
    if not layout.has_journal(history_dir):
        return history
    return History(run_dir, run, files, _unfinished(history, history_dir))


def history_of_tables(source: Path, run: RunInfo, tables: Mapping[str, pa.Table]) -> History:
    """Return a history in memory that was read from `source`.

    The tables have exactly the types of `SCHEMAS`. A table that is not given is absent.
    """
    known = {name: without_unknown(name, table) for name, table in tables.items()}
    return History(source, run, dict.fromkeys(SCHEMAS, ()), known)


def _unfinished(history: History, history_dir: Path) -> dict[str, pa.Table]:
    """Return the rows of the journal that the other files do not have."""
    journal = {name: _journal(history_dir, name) for name in layout.JOURNAL_TABLES}
    operations = _without(journal["operations"], "op_id", history.table("operations", ["op_id"]))
    faults = _without(journal["faults"], "fault_id", history.table("faults", ["fault_id"]))
    records = journal["records"].filter(pc.is_in(journal["records"]["op_id"], value_set=operations["op_id"]))
    found = {"operations": operations, "faults": faults, "records": records}
    return {name: table for name, table in found.items() if table.num_rows}


def _journal(history_dir: Path, name: str) -> pa.Table:
    files = layout.journal_files(history_dir, name)
    for path in files:
        check_schema(name, path, _footer(path))
    parts = [_read(name, path, SCHEMAS[name].names) for path in files]
    return pa.concat_tables([SCHEMAS[name].empty_table(), *itertools.chain.from_iterable(parts)])


def _without(table: pa.Table, key: str, others: pa.Table) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table[key], value_set=others[key])))


def _footer(path: Path) -> pa.Schema:
    bytes_held = check_regular(path)
    try:
        metadata = pq.read_metadata(path)
        check_row_count(path, metadata, bytes_held)
        return metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def _read(name: str, path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    metadata, rows = pq.read_metadata(path), 0
    for table in read_row_groups(name, path, columns, metadata):
        rows += table.num_rows
        yield table
    if rows != metadata.num_rows:
        raise HistoryError(f"{path}: table {name}: its footer claims {metadata.num_rows} rows, but it holds {rows}")


def read_row_groups(
    name: str,
    path: Path,
    columns: Sequence[str],
    metadata: pq.FileMetaData,
    *,
    row_groups: Sequence[int] | None = None,
    first_row: int = 0,
) -> Iterator[pa.Table]:
    """Yield rows of a file, `BATCH_ROWS` at a time, with exactly the types of `SCHEMAS`. Raises HistoryError.

    :param row_groups: indexes of the row groups to read; None for all.
    :param first_row: number of the first of these rows in the file, for messages.
    """
    texts = [column for column in columns if pa.types.is_string(SCHEMAS[name].field(column).type)]
    try:
        # Not pq.read_table, because it treats `NAME=VALUE` folders above the file as columns. Texts are read as
        # dictionaries, so that a repeated text is in memory only once until `check_text_bytes` has counted the bytes.
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            for batch in file.iter_batches(BATCH_ROWS, row_groups=row_groups, columns=list(columns)):
                table = pa.Table.from_batches([batch]).select(list(columns))
                check_text_bytes(name, path, table, first_row)
                yield conform(name, path, table, first_row)
                first_row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> HistoryError:
    """Return the error for a file that Arrow cannot read."""
    return HistoryError(f"{path}: not a readable Parquet file: {one_line(error)}")
