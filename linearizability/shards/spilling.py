"""Spilling, the first half of the layout: rows are distributed in the order of arrival into sorted runs (`runs`).

A task reads some pieces of the tables in chunks of a million rows, and holds one chunk in memory. If a layout is
created while its history is written, the writer distributes the rows instead (`writing`). Every row of `records` gets
those columns of its operation that `tables` lists. An operation is copied to every log that has one of its rows. Rows
are also counted (`census`) and checked against the rules of the format (`rules`), so that tables are read only once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import OPERATION_FIELDS, Place, not_served, numbers, place_codes, wanted_keys
from linearizability.anomalies.columns import Flags, Indexes
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.anomalies.promise import topic_rules
from linearizability.anomalies.settings import Settings
from linearizability.history.reader import History
from linearizability.history.schema import SCHEMAS
from linearizability.shards import tables
from linearizability.shards.census import Census, Counted, counted, merged
from linearizability.shards.pieces import Operations, Piece, read_piece
from linearizability.shards.rules import BrokenError, RecordRules, Span, Topic, check_rows, topics_of
from linearizability.shards.runs import Batches, RunWriter

CHUNK_ROWS: Final = 1_000_000
UNKNOWN: Final = -1

SENT: Final = pa.schema([f for f in tables.SENDS if f.name != "at"])
"""The schema of distributed rows of `records`, of either direction."""
KEYED_OPERATIONS: Final = pa.schema([tables.LOG, *tables.OPERATIONS, pa.field("key", pa.int64(), nullable=False)])
"""The schema of distributed operations. `key` is the offset of one record of the operation, or -1 if unknown."""


@dataclass(frozen=True, slots=True)
class Spill:
    """The rows that a task has distributed."""

    places: tuple[Place, ...]
    files: Mapping[str, Batches]
    census: Census
    positions: int
    topics: frozenset[Topic]
    """Names and ids of topics in any row."""
    op_ids: Span | None
    """The lowest and highest op_id of its records; None if there are none."""
    is_whole: bool
    """Whether all rows were distributed. Distribution stops at a row that breaks a rule on its own."""
    keeps_rules: bool
    """Whether all rows were distributed, and keep the rules that one task can check (`rules`)."""


@dataclass(frozen=True, slots=True)
class Spilling:
    """Task that distributes the rows of some pieces of the tables."""

    history: History
    folder: Path
    pieces: Sequence[Piece]
    settings: Settings
    number: int

    def __call__(self) -> Spill:
        """Distribute the rows."""
        operations = Operations(self.history)
        with Dealer(self.folder, self.number, lambda topic: topic_rules(self.settings, topic).compaction) as dealer:
            for name, table in self._chunks():
                dealer.deal(name, table, operations.between)
        return dealer.spill()

    def _chunks(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of one table after another, about `CHUNK_ROWS` at a time, with the name of the table."""
        for name in dict.fromkeys(piece.table for piece in self.pieces):
            waiting: list[pa.Table] = []
            for piece in self.pieces:
                for table in read_piece(self.history, piece, SCHEMAS[name].names) if piece.table == name else ():
                    waiting.append(table)
                    if sum(part.num_rows for part in waiting) >= CHUNK_ROWS:
                        yield name, pa.concat_tables(waiting)
                        waiting = []
            if waiting:
                yield name, pa.concat_tables(waiting)


class Dealer:
    """Distributor that joins rows with their operations and writes them to their logs."""

    def __init__(self, folder: Path, number: int, compacted: Callable[[str], bool]) -> None:
        self._writer = RunWriter(folder, number)
        self._compacted = compacted
        self._rules = RecordRules()
        self._census: Census = {}
        self._positions = 0
        self._topics: set[Topic] = set()
        self._is_whole = True

    def __enter__(self) -> "Dealer":
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()

    def deal(self, name: str, table: pa.Table, operations: Callable[[int, int], pa.Table]) -> None:
        """Distribute rows of a public table. Once a row has broken a rule, do nothing.

        :param operations: function that returns the operations with ids from low to high, sorted by op_id, with
            OPERATION_FIELDS.
        """
        try:
            if self._is_whole and table.num_rows:
                self._deal(name, table, operations)
        except BrokenError:
            self._is_whole = False

    def spill(self) -> Spill:
        """Return the description of the rows that were distributed."""
        return Spill(
            self._writer.places,
            self._writer.files,
            self._census,
            self._positions,
            frozenset(self._topics),
            self._rules.span,
            self._is_whole,
            self._is_whole and self._rules.hold(),
        )

    def _deal(self, name: str, table: pa.Table, operations: Callable[[int, int], pa.Table]) -> None:
        own, op_id = None, np.empty(0, np.int64)
        if "op_id" in table.column_names:
            op_id = numbers(table["op_id"], 0)
            own = operations(int(op_id.min()), int(op_id.max()))
        check_rows(name, table, own)
        self._topics |= topics_of(table)
        if table["topic"].null_count or table["partition"].null_count:  # rows without a partition belong to no shard
            placed = pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"]))
            table = table.filter(placed)
            op_id = op_id[placed.to_numpy()] if own is not None else op_id
        table = table.select(SHARD_FIELDS[name])
        places, codes = place_codes(table)
        of = np.empty(0, np.intp) if own is None else np.searchsorted(numbers(own["op_id"], 0), op_id)
        if name == "records" and own is not None:
            self._deal_records(table, own, of, places, codes)
            return
        self._census = merged([self._census, dict.fromkeys(places, Counted())], {})
        columns = {name: table[name] for name in table.column_names}
        if own is not None and name == "positions":
            self._positions += table.num_rows
            columns["process"] = pa.chunked_array([numbers(own["process"], 0)[of].astype(np.int32)])
            columns["polls"] = pa.chunked_array([pc.equal(own["f"], "poll").to_numpy()[of].astype(np.int8)])
        fields = [f for f in tables.small_schema(name) if f.name != "log"]
        rows = pa.table([columns[f.name] for f in fields], schema=pa.schema(fields))
        self._writer.write(name, rows, places, codes, key=np.zeros(len(codes), np.int64))
        if own is not None:
            self._deal_operations(own, of, places, codes, np.full(len(codes), UNKNOWN, np.int64))

    def _deal_records(
        self, table: pa.Table, own: pa.Table, of: Indexes, places: Sequence[Place], codes: Indexes
    ) -> None:
        offset, is_read = numbers(table["offset"], UNKNOWN), pc.equal(table["direction"], "read").to_numpy()
        log = self._writer.numbers(places)[codes]
        self._rules.add(numbers(table["op_id"], 0), numbers(table["seq"], 0).astype(np.int32), is_read, log)
        self._census = merged([self._census, counted(places, codes, is_read)], {})
        columns = _record_columns(table, own, of, wanted_keys(table, self._compacted))
        for name, wanted in (("sends", ~is_read), ("reads", is_read)):
            self._writer.write(name, columns, places, codes, key=offset, wanted=wanted)
        self._deal_operations(own, of, places, codes, offset)

    def _deal_operations(
        self, own: pa.Table, of: Indexes, places: Sequence[Place], codes: Indexes, key: Indexes
    ) -> None:
        """Write each operation once to every log in which it has rows, with the key of one of these rows."""
        pairs = codes * own.num_rows + of
        fresh = np.flatnonzero(np.diff(pairs, prepend=-1))
        pairs, first = np.unique(pairs[fresh], return_index=True)
        rows = own.select(OPERATION_FIELDS).take(pa.array(pairs % own.num_rows))
        rows = rows.append_column(KEYED_OPERATIONS.field("key"), pa.array(key[fresh][first]))
        self._writer.write("operations", rows, places, pairs // own.num_rows, key=key[fresh][first])


def _record_columns(table: pa.Table, own: pa.Table, of: Indexes, keyed: Flags) -> pa.Table:
    """Return rows of `records` with the columns of SENT except the log; `of` has each row's index in `own`."""
    outcome = own["outcome"]
    complete_ns = numbers(own["complete_ns"], NEVER_NS)
    ok = pc.equal(outcome, "ok").to_numpy()
    bits = (
        (ok, tables.OK),
        (pc.equal(outcome, "fail").to_numpy(), tables.FAIL),
        (pc.is_valid(own["txn_seq"]).to_numpy(), tables.IN_TRANSACTION),
        (not_served(own), tables.NOT_SERVED),
    )
    flags = sum((np.where(holds, bit, 0) for holds, bit in bits), np.zeros(own.num_rows, np.int64))[of]
    is_read = pc.equal(table["direction"], "read").to_numpy()
    served = ok & (complete_ns != NEVER_NS) & pc.not_equal(own["f"], "read_replica").to_numpy()
    flags[is_read] = np.where(served, tables.SERVED, 0)[of[is_read]]
    intact = numbers(table["intact"].cast(pa.int8()), 2)
    flags += np.array([tables.CORRUPT, tables.INTACT, 0])[intact]
    flags[table["value"].is_null().to_numpy()] |= tables.TOMBSTONE
    columns = {
        "op_id": numbers(table["op_id"], 0),
        "seq": table["seq"],
        "offset": numbers(table["offset"], UNKNOWN),
        "value": numbers(table["value"], 0),
        "leader_epoch": numbers(table["leader_epoch"], UNKNOWN),
        "process": numbers(own["process"], 0)[of],
        "node": numbers(own["node"], UNKNOWN)[of],
        "invoke_ns": numbers(own["invoke_ns"], 0)[of],
        "complete_ns": complete_ns[of],
        "flags": flags,
        "key": pc.if_else(pa.array(keyed), table["key"], pa.scalar(None, pa.string())),
    }
    fields = [f for f in SENT if f.name != "log"]
    arrays = [columns[f.name] for f in fields]
    return pa.table(
        [pa.chunked_array([a]) if isinstance(a, pa.Array) else a for a in arrays], names=[f.name for f in fields]
    ).cast(pa.schema(fields))
