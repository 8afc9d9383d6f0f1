"""Reader of a shard's files: as arrays for the sieve, and as rows of the public tables for the anomaly definitions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.anomalies.arrow import PLACE_FIELDS, Place, numbers
from linearizability.anomalies.columns import Indexes, Int64s
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.history.errors import HistoryError, one_line
from linearizability.history.schema import SCHEMAS
from linearizability.shards import tables
from linearizability.shards.edges import UNKNOWN
from linearizability.shards.manifest import Layout
from linearizability.shards.sieve import Reads, Sends

Rows = TypeVar("Rows", Sends, Reads)


@dataclass(frozen=True, slots=True)
class PartRows:
    """The records of a part for the sieve, sorted by log."""

    sends: Sends
    reads: Reads
    sends_log: Indexes
    reads_log: Indexes

    def select(self, log: int) -> tuple[Sends, Reads, int, int]:
        """Return the sends and reads of a log, and the row numbers in the part of the first send and the first read."""
        send, end = np.searchsorted(self.sends_log, [log, log + 1]).tolist()
        read, last = np.searchsorted(self.reads_log, [log, log + 1]).tolist()
        return self.sends.slice(send, end), self.reads.slice(read, last), send, read


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The files of one shard."""

    layout: Layout
    shard: int

    def part(self, part: int) -> PartRows:
        """Return the records of a part for the sieve."""
        sends = self._read_part(part, "sends", ["log", *(f.name for f in fields(Sends))])
        reads = self._read_part(part, "reads", ["log", *(f.name for f in fields(Reads))])
        return PartRows(_arrays(Sends, sends), _arrays(Reads, reads), sends["log"].to_numpy(), reads["log"].to_numpy())

    def order_of_reads(self, part: int) -> tuple[Int64s, Indexes, Indexes]:
        """Return the op_id, `seq` and flags of each read of a part."""
        table = self._read_part(part, "reads", ["op_id", "seq", "flags"])
        return table["op_id"].to_numpy(), table["seq"].to_numpy(), table["flags"].to_numpy()

    def loose(self) -> Sends:
        """Return the sends of a split shard that have no acknowledged offset; none if the shard is not split."""
        return _arrays(Sends, self._loose())

    def records(self, part: int, sends: Indexes | None, reads: Indexes | None) -> pa.Table:
        """Return rows of `records` by their numbers in the files of a part; None means all rows."""
        both = []
        for name, rows in (("sends", sends), ("reads", reads)):
            if rows is None or len(rows):
                table = self._read_part(part, name, None)
                both.append(_records(table if rows is None else table.take(pa.array(rows)), name, self.layout.places))
        return pa.concat_tables([_no_rows("records"), *both])

    def loose_records(self) -> pa.Table:
        """Return the result of `loose` as rows of `records`."""
        return _records(self._loose(), "sends", self.layout.places)

    def _loose(self) -> pa.Table:
        path = self.layout.small_file(self.shard, "sends")
        return _read(path) if path.exists() else tables.SENDS.empty_table()

    def small(self, name: str) -> pa.Table:
        """Return a small table, with `tables.small_schema`."""
        path = self.layout.small_file(self.shard, name)
        return _read(path) if path.exists() else tables.small_schema(name).empty_table()

    def public(self, name: str, table: pa.Table) -> pa.Table:
        """Return rows of a small table in the form of the public one."""
        return _placed(table, self.layout.places, SHARD_FIELDS[name])

    def operations(self, wanted: Iterable[pa.Table]) -> pa.Table:
        """Return the operations of some rows, each once, sorted by op_id."""
        op_ids = [numbers(table["op_id"], 0) for table in wanted if "op_id" in table.column_names]
        used = np.unique(np.concatenate([np.empty(0, np.int64), *op_ids]))
        folder = self.layout.shard_folder(self.shard)
        found = [tables.OPERATIONS.empty_table()]
        for path in sorted(folder.glob("operations*.parquet")) if len(used) else ():
            table = _read(path)
            found.append(table.filter(pa.array(np.isin(numbers(table["op_id"], 0), used))))
        whole = pa.concat_tables(found)
        _, first = np.unique(numbers(whole["op_id"], 0), return_index=True)
        return whole.take(pa.array(first))

    def _read_part(self, part: int, name: str, columns: Sequence[str] | None) -> pa.Table:
        return _read(self.layout.part_file(self.shard, part, name), columns)


@dataclass(frozen=True, slots=True)
class TableSource:
    """Some tables as a `gather.Source`."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""
        return int(self.tables[name].num_rows) if name in self.tables else 0

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield some columns of a table, as one batch."""
        yield (self.tables[name] if name in self.tables else _no_rows(name)).select(list(columns))


def _no_rows(name: str) -> pa.Table:
    return pa.schema([SCHEMAS[name].field(column) for column in SHARD_FIELDS[name]]).empty_table()


def _read(path: object, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns, partitioning=None, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path}: cannot be read; delete its parent folder: {one_line(error)}") from None


def _arrays(kind: type[Rows], table: pa.Table) -> Rows:
    return kind(*(table[column.name].to_numpy() for column in fields(kind)))


def _records(table: pa.Table, name: str, places: Sequence[Place]) -> pa.Table:
    """Convert rows of `tables.SENDS` or READS to rows of the public table."""
    flags = table["flags"].to_numpy()
    columns = {
        **{column: table[column] for column in ("log", "op_id", "seq", "key")},
        **{column: _known(table[column]) for column in ("offset", "leader_epoch")},
        "value": pa.array(table["value"].to_numpy(), mask=(flags & tables.TOMBSTONE) != 0),
        "intact": pa.array((flags & tables.INTACT) != 0, mask=(flags & (tables.INTACT | tables.CORRUPT)) == 0),
        "direction": pa.array([name[:-1]]).take(pa.array(np.zeros(table.num_rows, np.int8))),
    }
    return _placed(pa.table(columns), places, SHARD_FIELDS["records"])


def _known(column: pa.ChunkedArray) -> pa.Array:
    values = column.to_numpy()
    return pa.array(values, mask=values == UNKNOWN)


def _placed(table: pa.Table, places: Sequence[Place], columns: Sequence[str]) -> pa.Table:
    """Return rows with the topic, topic id and partition of their log."""
    log = table["log"]
    kinds = {"topic": pa.string(), "topic_id": pa.string(), "partition": pa.int32()}
    whole = {name: table[name] for name in table.column_names}
    used, codes = np.unique(log.to_numpy(), return_inverse=True)
    for number, name in enumerate(PLACE_FIELDS):
        distinct = pa.array([places[own][number] for own in used.tolist()], kinds[name])
        whole[name] = distinct.take(pa.array(codes))
    made = pa.table({name: whole[name] for name in columns})
    return made.cast(pa.schema([pa.field(f.name, kinds.get(f.name, f.type)) for f in made.schema]))
