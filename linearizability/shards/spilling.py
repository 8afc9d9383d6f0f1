"""The first half of laying out: rows leave the public tables in the order in which they come, and are dealt to shards.

A task reads some pieces of the tables, a million rows at a time, and writes one file per table, in which each record
batch is what one *slot* gets of those rows; which batch is whose it says in its answer. So no file is opened twice, and
memory holds one chunk. Every row of `records` gets the columns of its operation that `tables` names; operations
themselves go to every slot that has rows of theirs.

Slots are numbers: those of all parts, in order, then one for each shard, with its small tables and, where it is cut,
the sends that were not told an offset.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import OPERATION_FIELDS, in_vain, numbers, place_codes, wanted_keys
from linearizability.anomalies.columns import Flags, Indexes, Int64s
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.history.reader import History
from linearizability.shards import tables
from linearizability.shards.manifest import Layout
from linearizability.shards.pieces import Operations, Piece, read_piece

CHUNK_ROWS: Final = 1_000_000
UNKNOWN: Final = -1
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")

SENT: Final = pa.schema([f for f in tables.SENDS if f.name != "at"])
"""A row of `records` on its way, of either direction."""


@dataclass(frozen=True, slots=True)
class Spill:
    """What a task has written: files by table, and in which slot each of their batches belongs."""

    files: dict[str, Path]
    slots: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Slots:
    """Who gets which rows."""

    layout: Layout
    _shard_of_log: npt.NDArray[np.int32] = field(init=False)
    _first_part: Indexes = field(init=False)

    def __post_init__(self) -> None:
        shards = self.layout.shards
        of_log = np.zeros(len(self.layout.places), np.int32)
        for number, shard in enumerate(shards):
            of_log[list(shard.logs)] = number
        object.__setattr__(self, "_shard_of_log", of_log)
        first = np.cumsum([0, *(len(shard.parts) for shard in shards)])
        object.__setattr__(self, "_first_part", first.astype(np.intp))

    def part(self, shard: int, part: int) -> int:
        """The slot of a part."""
        return int(self._first_part[shard]) + part

    def shard(self, shard: int) -> int:
        """The slot of a shard."""
        return int(self._first_part[-1]) + shard

    def of_records(self, log: npt.NDArray[np.int32], offset: Int64s, is_read: Flags) -> Indexes:
        """Row by row."""
        shard = self._shard_of_log[log]
        slot = self._first_part[shard].copy()
        for number in np.unique(shard).tolist():
            own = self.layout.shards[number]
            if own.is_cut:
                rows = np.flatnonzero(shard == number)
                ends = np.array([part.end for part in own.parts[:-1]])
                slot[rows] += np.searchsorted(ends, offset[rows], side="right")
                slot[rows[(offset[rows] == UNKNOWN) & ~is_read[rows]]] = self.shard(number)
        return slot

    def of_small(self, log: npt.NDArray[np.int32]) -> Indexes:
        """Row by row, of the small tables."""
        slots: Indexes = self._first_part[-1] + self._shard_of_log[log].astype(np.intp)
        return slots


@dataclass(frozen=True, slots=True)
class Spilling:
    """One task: some pieces of the tables."""

    history: History
    layout: Layout
    pieces: Sequence[Piece]
    compacted: frozenset[str]
    """Topics with compaction, whose keys matter."""
    number: int

    def __call__(self) -> Spill:
        """Write the rows."""
        writer = _Writer(self.layout.folder / "spill", self.number)
        dealer = _Dealer(writer, Operations(self.history), Slots(self.layout), self.compacted)
        places = {place: number for number, place in enumerate(self.layout.places)}
        try:
            for name, table in self._chunks():
                own, codes = place_codes(table)
                log = np.array([places[place] for place in own], np.int32)[codes]
                dealer.deal(name, table, log)
        finally:
            writer.close()
        return Spill(writer.files, dict(writer.slots))

    def _chunks(self) -> Iterator[tuple[str, pa.Table]]:
        """Rows of one table, many at a time."""
        for name in dict.fromkeys(piece.table for piece in self.pieces):
            waiting: list[pa.Table] = []
            for piece in self.pieces:
                for table in read_piece(self.history, piece, SHARD_FIELDS[name]) if piece.table == name else ():
                    waiting.append(_with_place(table))
                    if sum(part.num_rows for part in waiting) >= CHUNK_ROWS:
                        yield name, pa.concat_tables(waiting)
                        waiting = []
            if waiting and (rest := pa.concat_tables(waiting)).num_rows:
                yield name, rest


@dataclass(frozen=True, slots=True)
class _Dealer:
    """Who puts rows and their operations together, and gives them to their slots."""

    writer: "_Writer"
    operations: Operations
    slots: Slots
    compacted: frozenset[str]

    def deal(self, name: str, table: pa.Table, log: npt.NDArray[np.int32]) -> None:
        """Write rows of a table, `log` their places."""
        own, of = None, np.empty(0, np.intp)
        if "op_id" in table.column_names:
            op_id = numbers(table["op_id"], 0)
            own = self.operations.between(int(op_id.min()), int(op_id.max()))
            of = np.searchsorted(numbers(own["op_id"], 0), op_id)
        if name == "records":
            slot = self._deal_records(table, own, of, log)
        else:
            slot = self.slots.of_small(log)
            schema = tables.small_schema(name)
            columns = {"log": log, **{name: table[name] for name in table.column_names}}
            if own is not None and name == "positions":
                columns["process"] = numbers(own["process"], 0)[of].astype(np.int32)
                columns["polls"] = pc.equal(own["f"], "poll").to_numpy()[of].astype(np.int8)
            self.writer.deal(name, pa.table({f.name: columns[f.name] for f in schema}, schema=schema), slot)
        if own is not None:
            self.writer.deal_operations(own, of, slot)

    def _deal_records(self, table: pa.Table, own: pa.Table, of: Indexes, log: npt.NDArray[np.int32]) -> Indexes:
        is_read = pc.equal(table["direction"], "read").to_numpy()
        slot = self.slots.of_records(log, numbers(table["offset"], UNKNOWN), is_read)
        columns = _record_columns(table, own, of, log, wanted_keys(table, lambda topic: topic in self.compacted))
        for name, rows in (("sends", np.flatnonzero(~is_read)), ("reads", np.flatnonzero(is_read))):
            self.writer.deal(name, columns.take(pa.array(rows)), slot[rows])
        return slot


def _with_place(table: pa.Table) -> pa.Table:
    """Rows that say which partition they are of; of the others no shard knows."""
    if table["topic"].null_count or table["partition"].null_count:
        return table.filter(pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
    return table


def _record_columns(table: pa.Table, own: pa.Table, of: Indexes, log: npt.NDArray[np.int32], keyed: Flags) -> pa.Table:
    """Rows of `records` in SENT, `of` their operations."""
    outcome = own["outcome"]
    complete_ns = numbers(own["complete_ns"], NEVER_NS)
    ok = pc.equal(outcome, "ok").to_numpy()
    bits = (
        (ok, tables.OK),
        (pc.equal(outcome, "fail").to_numpy(), tables.FAIL),
        (pc.is_valid(own["txn_seq"]).to_numpy(), tables.IN_TRANSACTION),
        (in_vain(own), tables.IN_VAIN),
    )
    flags = sum((np.where(holds, bit, 0) for holds, bit in bits), np.zeros(own.num_rows, np.int64))[of]
    is_read = pc.equal(table["direction"], "read").to_numpy()
    served = ok & (complete_ns != NEVER_NS) & pc.not_equal(own["f"], "read_replica").to_numpy()
    flags[is_read] = np.where(served, tables.SERVED, 0)[of[is_read]]
    intact = numbers(table["intact"].cast(pa.int8()), 2)
    flags += np.array([tables.CORRUPT, tables.INTACT, 0])[intact]
    flags[table["value"].is_null().to_numpy()] |= tables.TOMBSTONE
    columns = {
        "log": log,
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
    arrays = [columns[f.name] for f in SENT]
    return pa.table([pa.chunked_array([a]) if isinstance(a, pa.Array) else a for a in arrays], names=SENT.names).cast(
        SENT
    )


class _Writer:
    """The files of one task."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self.files: dict[str, Path] = {}
        self.slots: dict[str, list[int]] = defaultdict(list)
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}

    def deal(self, name: str, table: pa.Table, slot: Indexes) -> None:
        """Write rows, each slot's together."""
        if not table.num_rows:
            return
        if np.any(np.diff(slot) < 0):
            order = np.argsort(slot.astype(np.int32), kind="stable")
            table, slot = table.take(pa.array(order)), slot[order]
        table = table.combine_chunks()
        begins = np.flatnonzero(np.diff(slot, prepend=-1))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(slot)], strict=True):
            for batch in table.slice(begin, end - begin).to_batches():
                self._writer(name, table.schema).write_batch(batch)
                self.slots[name].append(int(slot[begin]))

    def deal_operations(self, own: pa.Table, of: Indexes, slot: Indexes) -> None:
        """Write each operation to every slot that has a row of it, once."""
        pairs = slot * own.num_rows + of
        fresh = np.flatnonzero(np.diff(pairs, prepend=-1))
        pairs = np.unique(pairs[fresh])
        self.deal(
            "operations", own.select(OPERATION_FIELDS).take(pa.array(pairs % own.num_rows)), pairs // own.num_rows
        )

    def close(self) -> None:
        """Every file is whole."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, name: str, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
        if name not in self._writers:
            self.files[name] = self._folder / f"{name}-{self._number:05d}.arrow"
            self._writers[name] = pa.ipc.new_file(self.files[name], schema, options=_OPTIONS)
        return self._writers[name]


Dealt = Mapping[str, Sequence[tuple[Path, Sequence[int]]]]
"""What a slot got: by table, files and numbers of batches in them."""


def dealt(spills: Iterable[Spill]) -> dict[int, Dealt]:
    """What each slot got, in the order of tasks."""
    found: dict[int, dict[str, list[tuple[Path, list[int]]]]] = defaultdict(lambda: defaultdict(list))
    for spill in spills:
        for name, slots in spill.slots.items():
            own: dict[int, list[int]] = defaultdict(list)
            for number, slot in enumerate(slots):
                own[slot].append(number)
            for slot, numbers_of_batches in own.items():
                found[slot][name].append((spill.files[name], numbers_of_batches))
    return {slot: dict(by_table) for slot, by_table in found.items()}


def gathered(own: Dealt, name: str, schema: pa.Schema) -> pa.Table:
    """All rows of a table that a slot got."""
    batches = []
    for path, wanted in own.get(name, ()):
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            batches += [reader.get_batch(number) for number in wanted]
    return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()
