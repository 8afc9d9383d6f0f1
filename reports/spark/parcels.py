"""Rows on their way between tasks: Spark moves parcels, not rows.

A *bucket* holds all rows of some topic partitions, chosen by a checksum of name and number. A parcel is what a batch of
one table has for one bucket, in Arrow's stream format, compressed: a handful of large values instead of millions of
rows for the JVM to carry. Opened again, the parcels of a bucket are a source for the local engine's `ShardRows`.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import OPERATION_FIELDS, numbers, place_codes, wanted_keys
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.history.reader import History
from linearizability.history.schema import SCHEMAS
from linearizability.shards.pieces import Operations, Piece, read_piece

PARCELS: Final = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("place", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("content", pa.binary()),
    ]
)
"""Which bucket; where the rows stood among those of the run, ascending; of which table; how many; the rows."""

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_ENCODED: Final = ("topic", "topic_id", "direction", "cause", "source", "isolation", "outcome", "error")
"""Strings of few values: they travel as codes."""


def pack(
    history: History, pieces: Sequence[Piece], first_place: int, buckets: int, compacted: Callable[[str], bool]
) -> Iterator[pa.RecordBatch]:
    """The rows of some pieces as PARCELS, and the operations that they belong to."""
    operations = Operations(history)
    place = first_place
    for piece in pieces:
        for table in read_piece(history, piece, SHARD_FIELDS[piece.table]):
            rows = _prepared(piece.table, table, compacted)
            if rows.num_rows:
                yield _parcels(piece.table, rows, place, buckets, operations)
                place += 1


def _prepared(name: str, table: pa.Table, compacted: Callable[[str], bool]) -> pa.Table:
    """The rows that a check reads; a key only where it does."""
    if name == "states":
        return table.filter(pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
    if name == "records":
        keys = pc.if_else(pa.array(wanted_keys(table, compacted)), table["key"], pa.scalar(None, pa.string()))
        return table.set_column(table.column_names.index("key"), "key", keys)
    return table


def _parcels(name: str, table: pa.Table, place: int, buckets: int, operations: Operations) -> pa.RecordBatch:
    places, codes = place_codes(table)
    of_place = np.array([bucket_of(topic, partition, buckets) for topic, _, partition in places])
    columns: dict[str, list[object]] = {column: [] for column in PARCELS.names}
    has_operations = "op_id" in table.column_names
    if has_operations:
        span = pc.min_max(table["op_id"]).as_py()
        known = _encoded(operations.between(span["min"], span["max"]))
        known_ids = numbers(known["op_id"], 0)
    for bucket, rows in _by_bucket(_encoded(table), of_place[codes]):
        _add(columns, bucket, place, name, rows)
        if has_operations:
            used = np.unique(numbers(rows["op_id"], 0))
            _add(columns, bucket, place, "operations", known.take(pa.array(np.searchsorted(known_ids, used))))
    return pa.RecordBatch.from_pydict(columns, schema=PARCELS)


def bucket_of(topic: str, partition: int, buckets: int) -> int:
    """The bucket of a topic partition, the same in every process."""
    return zlib.crc32(f"{partition} {topic}".encode()) % buckets


def _by_bucket(table: pa.Table, buckets: npt.NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    order = np.argsort(buckets, kind="stable")
    ordered = buckets[order]
    table = table.take(pa.array(order)).combine_chunks() if np.any(np.diff(buckets) < 0) else table
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    for begin, end in zip(begins, np.append(begins[1:], len(ordered)), strict=True):
        yield int(ordered[begin]), table.slice(begin, end - begin)


def _encoded(table: pa.Table) -> pa.Table:
    columns = [
        pc.dictionary_encode(column.combine_chunks()) if name in _ENCODED else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _add(columns: dict[str, list[object]], bucket: int, place: int, name: str, rows: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as writer:
        writer.write_table(rows)
    values = (bucket, place, name, rows.num_rows, sink.getvalue().to_pybytes())
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


class Bucket:
    """The parcels of one bucket, closed until they are asked for: a `Source`."""

    def __init__(self, parcels: Iterable[tuple[str, int, bytes]]) -> None:
        self._contents: dict[str, list[bytes]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        for name, count, content in parcels:
            self._contents[name].append(content)
            self._counts[name] += count

    def count(self, name: str) -> int:
        """How many rows of a table it has."""
        return self._counts[name]

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Those columns of the rows, parcel by parcel."""
        schema = pa.schema([SCHEMAS[name].field(column) for column in columns])
        yield schema.empty_table()
        for content in self._contents[name]:
            with pa.ipc.open_stream(content) as reader:
                yield reader.read_all().select(columns).cast(schema)

    def operations(self) -> pa.Table:
        """Its operations (OPERATION_FIELDS), each once, sorted by op_id."""
        table = pa.concat_tables(self.batches("operations", OPERATION_FIELDS))
        _, first = np.unique(numbers(table["op_id"], 0), return_index=True)
        return table.take(pa.array(first))


def opened(batches: Iterable[pa.RecordBatch]) -> Iterator[Bucket]:
    """The buckets of a task's PARCELS, which are sorted by bucket and place."""
    current: int | None = None
    parcels: list[tuple[str, int, bytes]] = []
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("bucket", "name", "count", "content"))
        for bucket, name, count, content in zip(*columns, strict=True):
            if parcels and bucket != current:
                yield Bucket(parcels)
                parcels = []
            current = bucket
            parcels.append((name, count, content))
    if parcels:
        yield Bucket(parcels)
