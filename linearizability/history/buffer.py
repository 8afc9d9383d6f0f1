"""Rows on their way to a file: whole blocks of columns, and single rows, turned into one Arrow table at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from linearizability.history.errors import HistoryError, one_line
from linearizability.history.schema import SCHEMAS

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one table, column by column. A column that is left out is null."""

    table: str
    columns: Mapping[str, Sequence[Any]]
    rows: int

    @classmethod
    def of_rows(cls, table: str, rows: Sequence[Row]) -> "Block":
        """Turn rows into columns."""
        return cls(table, {name: [row.get(name) for row in rows] for name in SCHEMAS[table].names}, len(rows))


class TableBuffer:
    """The blocks of one table since the last flush. Not thread-safe: it belongs to the flusher."""

    def __init__(self, table: str) -> None:
        self.table: Final = table
        self._blocks: list[Block] = []

    def add(self, block: Block) -> None:
        """Keep a block for the next flush."""
        self._blocks.append(block)

    def take(self) -> pa.Table:
        """Everything since the last call, in the order it came. Raises HistoryError for a value of a wrong type."""
        blocks, self._blocks = self._blocks, []
        return pa.Table.from_arrays([_column(field, blocks) for field in self._schema], schema=self._schema)

    @property
    def _schema(self) -> pa.Schema:
        return SCHEMAS[self.table]

    def __bool__(self) -> bool:
        return bool(self._blocks)


def _column(field: pa.Field, blocks: Sequence[Block]) -> pa.Array:
    values: list[Any] = []
    for block in blocks:
        column = block.columns.get(field.name)
        values.extend(column if column is not None else [None] * block.rows)
    try:
        return pa.array(values, type=field.type)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise HistoryError(f"{blocks[0].table}: column {field.name}: {one_line(error)}") from None
