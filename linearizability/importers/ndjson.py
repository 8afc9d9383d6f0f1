"""The public tables as text: one JSON object per line, with the name of its table.

    {"table": "run", "format": 1, "run_id": "r", "topics": {"orders": {}}, "complete": true}
    {"table": "operations", "op_id": 1, "process": 1, "f": "produce", "invoke_ns": 100, "outcome": "info"}
    {"table": "records", "op_id": 1, "seq": 0, "direction": "send", "topic": "orders", "partition": 0, "value": 41}

The line `run` has the members of `run.json` and occurs once. The other lines are rows with the columns of the public
format; rows of different tables may be in any order. An omitted column is null. A table that no line names is absent. A
line with only a table name adds no row, but makes the table present: an empty `positions` differs from an absent one.
"""

import json
import re
from pathlib import Path
from typing import Any, Final, TextIO

import pyarrow as pa

from linearizability.history.errors import HistoryError
from linearizability.history.reader import History, history_of_tables
from linearizability.history.rows import BrokenRowError
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.history.validate import validate
from linearizability.importers.source import bad_line, json_of, read_lines, shown

TABLE: Final = "table"
RUN: Final = "run"


def write_ndjson(history: History, file: TextIO) -> int:
    """Write a history, and return the number of lines. Raises HistoryError or OSError."""
    lines = 1
    file.write(json.dumps({TABLE: RUN, **history.run.document()}) + "\n")
    for name in SCHEMAS:
        rows = 0
        for batch in history.batches(name):
            rows += batch.num_rows
            file.writelines(_line(name, row) for row in batch.to_pylist())
        if not rows and not history.is_absent(name):
            file.write(_line(name, {}))
            rows = 1
        lines += rows
    return lines


def _line(name: str, row: dict[str, Any]) -> str:
    known = {column: value for column, value in row.items() if value is not None}
    return json.dumps({TABLE: name, **known}, ensure_ascii=False) + "\n"


def read_ndjson(path: Path) -> History:
    """Read a history into memory and validate it.

    Raises HistoryError with the line, NotARunError for another format version.
    """
    rows: dict[str, _Rows] = {}
    run: RunInfo | None = None
    for line, text in read_lines(path):
        if not text.strip():
            continue
        name, row = _object(path, line, text)
        if name != RUN:
            rows.setdefault(name, _Rows(path, name)).add(line, row)
        elif run is None:
            run = _run(path, line, row)
        else:
            raise bad_line(path, line, "a second line of table run")
    if run is None:
        raise HistoryError(f'{path}: it has no line {{"table": "run", "format": 1, …}}')
    history = history_of_tables(path, run, {name: own.table() for name, own in rows.items()})
    try:
        validate(history)
    except BrokenRowError as error:
        lines = rows[error.table].lines
        what = re.sub(r"\brow (\d+)\b", lambda found: f"line {lines[int(found[1])]}", error.what)
        raise bad_line(path, lines[error.row], f"table {error.table}: {what}") from None
    return history


def _object(path: Path, line: int, text: str) -> tuple[str, dict[str, Any]]:
    row = json_of(path, line, text)
    name = row.pop(TABLE, None) if isinstance(row, dict) else None
    if name != RUN and name not in list(SCHEMAS):
        raise bad_line(path, line, f"not an object with a table ({RUN}, {', '.join(SCHEMAS)}): {shown(text)}")
    return name, row


def _run(path: Path, line: int, document: dict[str, Any]) -> RunInfo:
    try:
        return RunInfo.of(path, document)
    except HistoryError as error:
        what = str(error).removeprefix(f"{path}: ")
        raise type(error)(str(bad_line(path, line, what))) from None


class _Rows:
    """The rows of one table, and their lines."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._columns: dict[str, list[Any]] = {column: [] for column in SCHEMAS[name].names}
        self.lines: list[int] = []

    def add(self, line: int, row: dict[str, Any]) -> None:
        """Add a row; ignore it if it has no column."""
        if not row:
            return
        unknown = row.keys() - self._columns.keys()
        if unknown:
            raise bad_line(self._path, line, f"table {self._name} has no column {shown(min(unknown))}")
        for name, values in self._columns.items():
            values.append(row.get(name))
        self.lines.append(line)

    def table(self) -> pa.Table:
        """Return the table with the types of the format. Raises HistoryError with the line."""
        schema = SCHEMAS[self._name]
        return pa.Table.from_arrays([self._array(field) for field in schema], schema=schema)

    def _array(self, field: pa.Field) -> pa.Array:
        values = self._columns[field.name]
        wanted = _python_type(field.type)
        if set(map(type, values)) <= {wanted, type(None)}:
            try:
                return pa.array(values, field.type)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                pass
        for line, value in zip(self.lines, values, strict=True):
            if value is not None and not _fits(value, field.type):
                what = f"table {self._name}: {field.name} is {shown(json.dumps(value))}, not of type {field.type}"
                raise bad_line(self._path, line, what)
        raise AssertionError(f"{field.name}: each value fits {field.type}, but pyarrow rejects the column")


def _python_type(kind: pa.DataType) -> type:
    if pa.types.is_list(kind):
        return list
    if pa.types.is_integer(kind):
        return int
    return bool if pa.types.is_boolean(kind) else str


def _fits(value: Any, kind: pa.DataType) -> bool:
    if type(value) is not _python_type(kind):
        return False
    if isinstance(value, list):
        return all(one is None or _fits(one, kind.value_type) for one in value)
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool) or -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1)
