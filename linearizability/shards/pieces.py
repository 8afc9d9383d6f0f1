"""Pieces of a run's tables. A piece is a row group, identified by its file and its number; one task reads it.

Only footers are read to plan the pieces. The rows that are in no file (`History.unfinished`) are a separate piece.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.anomalies.arrow import OPERATION_FIELDS, numbers
from linearizability.history.reader import History, read_row_groups, unreadable

_UNFINISHED: Final = -1
"""The value of `Piece.file` for rows that are in no file."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One row group of a table, or the unfinished rows of a run."""

    table: str
    file: int
    row_group: int
    rows: int


def pieces_of(history: History, table: str) -> list[Piece]:
    """Return the non-empty pieces of a table, in order."""
    pieces = [
        Piece(table, number, group, metadata.row_group(group).num_rows)
        for number, path in enumerate(history.files(table))
        for metadata in [_metadata(path)]
        for group in range(metadata.num_row_groups)
    ]
    pieces.append(Piece(table, _UNFINISHED, 0, history.unfinished(table).num_rows))
    return [piece for piece in pieces if piece.rows]


def shares_of(pieces: Sequence[Piece], count: int) -> list[list[Piece]]:
    """Divide pieces into at most `count` non-empty shares of about equal numbers of rows, in order."""
    total = sum(piece.rows for piece in pieces)
    shares: list[list[Piece]] = [[] for _ in range(count)]
    before = 0
    for piece in pieces:
        shares[before * count // total].append(piece)
        before += piece.rows
    return [share for share in shares if share]


def read_piece(history: History, piece: Piece, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a piece with the types of the format, BATCH_ROWS at a time. Raises HistoryError."""
    if piece.file == _UNFINISHED:
        yield history.unfinished(piece.table).select(list(columns))
        return
    path = history.files(piece.table)[piece.file]
    metadata = _metadata(path)
    first_row = sum(metadata.row_group(group).num_rows for group in range(piece.row_group))
    yield from read_row_groups(piece.table, path, columns, metadata, row_groups=[piece.row_group], first_row=first_row)


class Operations:
    """Lookup of a run's operations by op_id. If the rows are in the order of op_ids, a lookup reads few row groups."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._pieces = [(piece, span_of(history, piece)) for piece in pieces_of(history, "operations")]
        self._kept: dict[Piece, pa.Table] = {}

    def between(self, low: int, high: int) -> pa.Table:
        """Return the operations with an op_id in [low, high] (OPERATION_FIELDS), sorted by op_id."""
        wanted = [piece for piece, (lowest, highest) in self._pieces if lowest <= high and low <= highest]
        self._kept = {piece: self._kept[piece] if piece in self._kept else self._read(piece) for piece in wanted}
        found = pa.concat_tables([self._history.unfinished("operations").select(OPERATION_FIELDS).slice(0, 0)])
        operations = pa.concat_tables([found, *self._kept.values()])
        op_ids = numbers(operations["op_id"], 0)
        near = operations.filter(pa.array((op_ids >= low) & (op_ids <= high)))
        return near.sort_by("op_id").combine_chunks()

    def _read(self, piece: Piece) -> pa.Table:
        return pa.concat_tables(read_piece(self._history, piece, OPERATION_FIELDS))


def span_of(history: History, piece: Piece) -> tuple[int, int]:
    """Return the lowest and highest op_id of a piece from its footer; if the footer lacks them, the widest bounds."""
    if piece.file != _UNFINISHED:
        group = _metadata(history.files(piece.table)[piece.file]).row_group(piece.row_group)
        for index in range(group.num_columns):
            column = group.column(index)
            if column.path_in_schema == "op_id" and column.is_stats_set and column.statistics.has_min_max:
                return int(column.statistics.min), int(column.statistics.max)
    return -(2**63), 2**63 - 1


def _metadata(path: Path) -> pq.FileMetaData:
    try:
        return _footer(path, path.stat().st_mtime_ns)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


@lru_cache(maxsize=64)
def _footer(path: Path, modified_ns: int) -> pq.FileMetaData:
    """Read a footer. It is cached, because every piece needs it, and it is long if there are many row groups."""
    return pq.read_metadata(path)
