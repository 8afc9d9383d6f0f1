"""A run's tables cut into pieces that one task reads by itself: row groups, by file and number.

Only footers are read to plan them. The rows a killed run had begun and not ended are a piece of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.history.conform import conform
from linearizability.history.errors import HistoryError, one_line
from linearizability.history.reader import History

BATCH_ROWS: Final = 131_072
"""At most so many rows in memory at a time."""

_UNFINISHED: Final = -1


@dataclass(frozen=True, slots=True)
class Piece:
    """One row group of a table, or what the run had not ended."""

    table: str
    file: int
    row_group: int

    @property
    def fields(self) -> tuple[str, int, int]:
        """The piece as a row for Spark."""
        return (self.table, self.file, self.row_group)


def pieces_of(history: History, table: str) -> list[Piece]:
    """Every piece of a table, in the order of its rows."""
    pieces = [
        Piece(table, number, group)
        for number, path in enumerate(history.files(table))
        for group in range(_metadata(path).num_row_groups)
    ]
    return [*pieces, Piece(table, _UNFINISHED, 0)] if history.unfinished(table).num_rows else pieces


def read_piece(history: History, piece: Piece, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of a piece with the types of the format, BATCH_ROWS at a time. Raises HistoryError."""
    if piece.file == _UNFINISHED:
        yield history.unfinished(piece.table).select(list(columns))
        return
    path = history.files(piece.table)[piece.file]
    metadata = _metadata(path)
    first_row = sum(metadata.row_group(group).num_rows for group in range(piece.row_group))
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[piece.row_group], columns=list(columns)):
                yield conform(piece.table, path, pa.Table.from_batches([batch]).select(list(columns)), first_row)
                first_row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from None


def operations_between(history: History, low: int, high: int, columns: Sequence[str]) -> pa.Table:
    """The operations whose op_id lies in [low, high]; row groups whose statistics leave it out are not read."""
    found = [history.unfinished("operations").select(list(columns)).slice(0, 0)]
    for piece in pieces_of(history, "operations"):
        if _may_hold(history, piece, low, high):
            for table in read_piece(history, piece, columns):
                op_id = table["op_id"]
                found.append(table.filter(pc.and_(pc.greater_equal(op_id, low), pc.less_equal(op_id, high))))
    return pa.concat_tables(found)


def _may_hold(history: History, piece: Piece, low: int, high: int) -> bool:
    if piece.file == _UNFINISHED:
        return True
    group = _metadata(history.files(piece.table)[piece.file]).row_group(piece.row_group)
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == "op_id" and column.is_stats_set and column.statistics.has_min_max:
            return bool(column.statistics.min <= high and low <= column.statistics.max)
    return True


def _metadata(path: Path) -> pq.FileMetaData:
    try:
        return _footer(path, path.stat().st_mtime_ns)
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from None


@lru_cache(maxsize=64)
def _footer(path: Path, modified_ns: int) -> pq.FileMetaData:
    """Footers are asked for once per piece, and are long where row groups are many."""
    return pq.read_metadata(path)


def _broken(path: Path, error: Exception) -> HistoryError:
    return HistoryError(f"{path}: not a readable Parquet file: {one_line(error)}")
