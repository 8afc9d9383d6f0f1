"""Pieces of a table, errors for rows that break a rule, and search for repeated rows.

Rows are counted from 0, in the order of a table's files.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.errors import HistoryError
from linearizability.printable import cut

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

SAMPLE_ROWS: Final = 65_536
"""The maximum number of rows in a `RepeatSample`."""
_TEXT_SHOWN: Final = 200
"""The maximum number of characters of a text in a message."""
_KEYS: Final = ("op_id", "seq", "fault_id", "process", "at_ns", "asked_ns")
"""The columns that identify a row in a message, if its table has them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of a table; `first_row` is the number of the first one."""

    name: str
    table: pa.Table
    first_row: int = 0

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.table[column]

    def reject_where(self, broken: pa.ChunkedArray, column: str, rule: str) -> None:
        """Raise HistoryError for the first row where `broken` is true; null does not count as true."""
        row = pc.index(broken, value=True).as_py()
        if row >= 0:
            raise self.broken_row(row, f"{column} is {_shown(self[column][row].as_py())}; {rule}")

    def check_text(self, column: str) -> None:
        """Raise HistoryError for the first text that is not UTF-8, which Parquet does not enforce."""
        try:
            self[column].validate(full=True)
        except pa.ArrowInvalid:
            for row, value in enumerate(self[column]):
                try:
                    value.as_py()
                except UnicodeDecodeError:
                    raise broken_row(self.name, self.first_row + row, {}, f"{column} is not UTF-8") from None

    def broken_row(self, row: int, what: str) -> "BrokenRowError":
        """Return the error for a row; `row` is its number in this piece."""
        keys = {key: self[key][row].as_py() for key in _KEYS if key in self.table.column_names}
        return broken_row(self.name, self.first_row + row, keys, what)


class BrokenRowError(HistoryError):
    """A row that breaks a rule of the format.

    The parts of the message are attributes, for callers that identify rows by line number.
    """

    table: str
    row: int
    what: str


def broken_row(name: str, row: int, keys: dict[str, Any], what: str) -> BrokenRowError:
    """Return the error for a row of a table, identified by its `keys`."""
    shown = ", ".join(f"{key} {_shown(value)}" for key, value in keys.items())
    error = BrokenRowError(f"table {name}, row {row}{f' ({shown})' if shown else ''}: {what}")
    error.table, error.row, error.what = name, row, what
    return error


def integers(table: pa.Table, column: str, null: int = 0) -> Numbers:
    """Return a column as int64, with `null` for nulls."""
    filled = table[column].fill_null(null) if table[column].null_count else table[column]
    numbers: Numbers = filled.to_numpy().astype(np.int64, copy=False)
    return numbers


def first_repeat(*columns: Numbers) -> tuple[int, int] | None:
    """Return the first row that repeats an earlier one in all columns, as (earlier, later); None if there is none."""
    codes = _packed(columns)
    if (codes[1:] > codes[:-1]).all() or _distinct(codes):
        return None
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    place = again[np.argmin(order[again + 1])]
    return int(order[place]), int(order[place + 1])


class RepeatSample:
    """Keys of a bounded sample of rows. A hash of the key selects the rows: all rows with this key, or none.

    A table with many repeated rows is detected after a few batches, in bounded memory.

    :param columns: number of columns of a key.
    :param copies_max: number of rows that may have the same key.
    """

    def __init__(self, columns: int, copies_max: int = 1) -> None:
        self._copies_max = copies_max
        self._limit = np.uint64(2**64 - 1)
        self._hashes = np.empty(0, np.uint64)
        self._columns = [np.empty(0, np.int64) for _ in range(1 + columns)]

    def find_repeat(self, first_row: int, *columns: Numbers) -> tuple[int, int] | None:
        """Add rows of the table, the first of them with number `first_row`.

        If a key has more rows than `copies_max`, return the numbers of its first row and of the first row too many.
        Otherwise return None.
        """
        hashes = _hashes(columns)
        chosen = np.flatnonzero(hashes <= self._limit)
        fresh = [chosen + first_row, *(column[chosen] for column in columns)]
        self._hashes = np.concatenate([self._hashes, hashes[chosen]])
        self._columns = [np.concatenate(pair) for pair in zip(self._columns, fresh, strict=True)]
        rows, *keys = self._columns
        if rows.size and (repeat := self._repeat(keys)) is not None:
            return int(rows[repeat[0]]), int(rows[repeat[1]])
        while self._hashes.size > SAMPLE_ROWS:
            self._limit //= np.uint64(2)
            kept = self._hashes <= self._limit
            self._hashes, self._columns = self._hashes[kept], [column[kept] for column in self._columns]
        return None

    def _repeat(self, keys: Sequence[Numbers]) -> tuple[int, int] | None:
        if self._copies_max == 1:
            return first_repeat(*keys)
        _, first, inverse, counts = np.unique(_packed(keys), return_index=True, return_inverse=True, return_counts=True)
        if counts.max() <= self._copies_max:
            return None
        most = int(np.argmax(counts))
        return int(first[most]), int(np.flatnonzero(inverse == most)[self._copies_max])


def row_hashes(table: pa.Table) -> Numbers:
    """Return a hash for each row. Rows that are equal in all columns except lists have the same hash."""
    columns = [
        _column_hash(table[name]) for name in table.column_names if not pa.types.is_list(table.schema.field(name).type)
    ]
    return _hashes(columns).view(np.int64)


def _column_hash(column: pa.ChunkedArray) -> Numbers:
    if pa.types.is_string(column.type):
        encoded = column.combine_chunks().dictionary_encode()
        texts = [0, *(zlib.crc32(text.as_buffer()) + 1 for text in encoded.dictionary)]
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        hashed: Numbers = np.array(texts, np.int64)[places]
        return hashed
    return pc.fill_null(column, -1).to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _hashes(columns: Sequence[Numbers]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return one number for each row, by the finalizer of SplitMix64."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed ^= column.astype(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _distinct(codes: Numbers) -> bool:
    ordered = np.sort(codes)
    return bool((ordered[1:] != ordered[:-1]).all())


def _packed(columns: Sequence[Numbers]) -> Numbers:
    """Return one number per row, equal exactly where all columns are."""
    packed, span = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        digits, width = _from_zero(column)
        if span * width >= 2**63:
            packed, span = _ranks(packed)
        if span * width >= 2**63:
            digits, width = _ranks(column)
        packed *= width
        packed += digits
        span *= width
    return packed


def _from_zero(column: Numbers) -> tuple[Numbers, int]:
    if not column.size:
        return column, 1
    low, high = int(column.min()), int(column.max())
    if high - low >= 2**62:
        return _ranks(column)
    return column - low, high - low + 1


def _ranks(column: Numbers) -> tuple[Numbers, int]:
    values, ranks = np.unique(column, return_inverse=True)
    return ranks.astype(np.int64, copy=False), max(values.size, 1)


def _shown(value: object) -> str:
    return "null" if value is None else repr(cut(value, _TEXT_SHOWN)) if isinstance(value, str) else str(value)
