"""Buffer of a table's rows (single rows and blocks of columns), which a flush converts into one Arrow table.

The recorder creates `Rows` and `Block`s in its caller's thread. There the work per row is minimal: tuples instead of
dataclasses, and one value for a constant column. The flusher's thread converts rows into columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

import pyarrow as pa

from linearizability.history.errors import HistoryError, one_line
from linearizability.history.schema import SCHEMAS

Row = Mapping[str, Any]


class Rows(NamedTuple):
    """Rows of one table, each a mapping of columns. A column that is left out is null."""

    table: str
    rows: Sequence[Row]

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self.rows)


class Block(NamedTuple):
    """Rows of one table by column; `constants` has the columns with one value for all rows. Other columns are null."""

    table: str
    length: int
    columns: Mapping[str, Sequence[Any]]
    constants: Row

    def column(self, name: str) -> Iterable[Any]:
        """Return the values of one column."""
        values = self.columns.get(name)
        return values if values is not None else repeat(self.constants.get(name), self.length)


class TableBuffer:
    """The rows of one table since the last flush, in order of arrival. Not thread-safe: only the flusher uses it."""

    def __init__(self, table: str) -> None:
        self.table: Final = table
        self._parts: list[list[Row] | Block] = []

    def add(self, part: Rows | Block) -> None:
        """Keep rows for the next flush."""
        if isinstance(part, Block):
            self._parts.append(part)
        elif self._parts and isinstance(self._parts[-1], list):
            self._parts[-1].extend(part.rows)
        else:
            self._parts.append(list(part.rows))

    def take(self) -> pa.Table:
        """Return all rows since the last call. Raises HistoryError for a value of a wrong type."""
        parts, self._parts = self._parts, []
        schema = SCHEMAS[self.table]
        return pa.Table.from_arrays([self._column(field, parts) for field in schema], schema=schema)

    def _column(self, field: pa.Field, parts: Iterable[list[Row] | Block]) -> pa.Array:
        values: list[Any] = []
        name = field.name
        for part in parts:
            values.extend(part.column(name) if isinstance(part, Block) else [row.get(name) for row in part])
        try:
            return pa.array(values, type=field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise HistoryError(f"{self.table}: column {name}: {one_line(error)}") from None

    def __bool__(self) -> bool:
        return bool(self._parts)
