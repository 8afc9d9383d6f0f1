"""Conversion of a foreign tool's files to the types of the format, with errors by file, column and row."""

from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.history.errors import HistoryError, one_line
from linearizability.history.schema import COLUMNS, SCHEMAS

ROWS_PER_BYTE_MAX: Final = 10_000
"""The maximum number of rows per byte of a file.

A real table has at most a few hundred, even with delta encoding and zstd: its rows differ in op_id, fault_id or time.
"""
BATCH_TEXT_BYTES_MAX: Final = 256 * 2**20
"""The maximum size of the texts of one column in a batch of rows."""
_RESERVED_BYTES_MAX: Final = 64 * 2**20
"""The memory that Arrow may reserve for one slice in `_decoded`, approximately."""
_UNKNOWN: Final = {
    name: {column.name: column.unknown for column in columns if column.unknown is not None}
    for name, columns in COLUMNS.items()
}
"""The value that means unknown, by table and column; columns without such a value are absent."""


def check_schema(name: str, path: Path, found: pa.Schema) -> None:
    """Raise HistoryError unless the table has every column once, with a compatible type."""
    for wanted in SCHEMAS[name]:
        places = found.get_all_field_indices(wanted.name)
        if not places:
            raise HistoryError(f"{path}: table {name} has no column {wanted.name} ({wanted.type})")
        if len(places) > 1:
            raise HistoryError(f"{path}: table {name} has column {wanted.name} {len(places)} times")
        given = found.field(places[0]).type
        if not _stands_for(given, wanted.type):
            raise HistoryError(f"{path}: table {name}: column {wanted.name} is of type {given}, not {wanted.type}")


def check_row_count(path: Path, footer: pq.FileMetaData, bytes_held: int) -> None:
    """Raise HistoryError if a footer's number of rows contradicts itself or is impossible for the file's size.

    Callers divide the work by this number before they read a row.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    in_groups = sum(group.num_rows for group in groups)
    flat = [place for place in range(footer.num_columns) if footer.schema.column(place).max_repetition_level == 0]
    values = next((n for group in groups for c in flat if (n := group.column(c).num_values) != group.num_rows), None)
    if footer.num_rows != in_groups:
        what = f"claims {footer.num_rows} rows, and its row groups {in_groups}"
    elif footer.num_rows > bytes_held * ROWS_PER_BYTE_MAX:
        what = f"claims {footer.num_rows} rows, more than {bytes_held} bytes can hold"
    elif values is not None:
        what = f"claims {values} values of a column in a row group with another number of rows"
    else:
        return
    raise HistoryError(f"{path}: not a readable Parquet file: its footer {what}")


def check_text_bytes(name: str, path: Path, table: pa.Table, first_row: int) -> None:
    """Raise HistoryError if the texts of a dictionary column are too large once each row has its own copy."""
    for column, field in zip(table.columns, table.schema, strict=True):
        if not (pa.types.is_dictionary(field.type) and _stands_for(field.type, pa.string())):
            continue
        lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
        size = sum(int(pc.sum(each.cast(pa.int64())).as_py() or 0) for each in lengths)
        if size > BATCH_TEXT_BYTES_MAX:
            where = f"{path}: table {name}, rows {first_row} to {first_row + len(column) - 1}: column {field.name}"
            raise HistoryError(f"{where}: {size} bytes of text; at most {BATCH_TEXT_BYTES_MAX} are accepted")


def has_types_of(schema: pa.Schema, found: pa.Schema) -> bool:
    """Whether a file's columns have the types of `schema`. Their order and columns beyond the format do not matter."""
    return all(found.field(wanted.name).type == wanted.type for wanted in schema)


def conform(name: str, path: Path, table: pa.Table, first_row: int) -> pa.Table:
    """Return the rows with exactly the types of the format; `first_row` is the number of the first one in its file.

    Raises HistoryError for a value that does not fit.
    """
    schema = SCHEMAS[name]
    fields = [schema.field(column) for column in table.column_names]
    columns = [
        table[field.name] if table[field.name].type == field.type else _cast(name, path, table, field, first_row)
        for field in fields
    ]
    return without_unknown(name, pa.Table.from_arrays(columns, schema=pa.schema(fields)))


def without_unknown(name: str, table: pa.Table) -> pa.Table:
    """Return the rows with null where Kafka's protocol has a value for an unknown offset, watermark or epoch.

    A tool that writes responses unchanged writes -1, and a last stable offset of -1 would be below every record.
    """
    for place, column in enumerate(table.column_names):
        unknown = _UNKNOWN[name].get(column)
        if unknown is None or not table.num_rows:
            continue
        is_unknown = pc.equal(table[column], unknown)
        if pc.any(is_unknown).as_py():
            field = table.schema.field(place)
            table = table.set_column(place, field, pc.if_else(is_unknown, pa.scalar(None, field.type), table[column]))
    return table


def _stands_for(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_null(given):
        return True
    if pa.types.is_list(wanted):
        return _is_list(given) and _stands_for(given.value_type, wanted.value_type)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(given))
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))
    return bool(given == wanted)


def _is_list(given: pa.DataType) -> bool:
    return bool(pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given))


def _cast(name: str, path: Path, table: pa.Table, field: pa.Field, first_row: int) -> pa.ChunkedArray:
    column = table[field.name]
    if pa.types.is_dictionary(column.type):
        column = _decoded(column)
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        if not pa.types.is_integer(field.type):
            raise HistoryError(f"{path}: table {name}: column {field.name}: {one_line(error)}") from None
    row = _first_misfit(column, field.type)
    where = f"{path}: table {name}, row {first_row + row}: column {field.name}"
    raise HistoryError(f"{where}: {column[row].as_py()} does not fit {field.type}")


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a dictionary column, decoded slice by slice to bound the memory.

    Arrow reserves the mean length of the dictionary's values for every row, even for a null.
    """
    parts: list[pa.Array] = []
    for chunk in column.chunks:
        mean_bytes = chunk.dictionary.nbytes // max(len(chunk.dictionary), 1)
        rows = _RESERVED_BYTES_MAX // (mean_bytes + 1) + 1
        parts += (chunk.slice(start, rows).dictionary_decode() for start in range(0, len(chunk), rows))
    return pa.chunked_array(parts if len(parts) < 2 else [pa.concat_arrays(parts)], column.type.value_type)


def _first_misfit(column: pa.ChunkedArray, wanted: pa.DataType) -> int:
    exact = pa.decimal128(20, 0)  # holds every 64-bit integer, signed or not
    high = 2 ** (wanted.bit_width - 1)
    numbers = column.cast(exact)
    too_high = pc.greater_equal(numbers, pa.scalar(Decimal(high), exact))
    too_low = pc.less(numbers, pa.scalar(Decimal(-high), exact))
    return int(pc.index(pc.or_(too_high, too_low), value=True).as_py())
