"""Settling, the second half of the layout: the rows of a part are merged, sorted, and written to its files.

Each read record gets two flags. COVERED: its offset is in the range by which its poll advanced the position. BACK: its
poll returned some record at or below the offset of the record before. A send without an acknowledged offset gets the
lowest offset at which its value was read.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.anomalies.arrow import numbers
from linearizability.anomalies.columns import Flags, Indexes, Int64s
from linearizability.drafts import draft_of
from linearizability.shards import tables
from linearizability.shards.manifest import Layout, Shard
from linearizability.shards.rules import Span, values_repeat
from linearizability.shards.runs import LOWEST, Dealt, gathered
from linearizability.shards.spilling import KEYED_OPERATIONS, SENT, UNKNOWN

ROW_GROUP_ROWS: Final = 262_144
_BY_DIFFERENCE: Final = "DELTA_BINARY_PACKED"


@dataclass(frozen=True, slots=True)
class Settled:
    """Facts about the sends of a part."""

    values: Span | None
    """The lowest and highest value of the part's own sends, without tombstones; None if there are none.

    The sends of a split log without an acknowledged offset belong to no part.
    """
    keeps_rules: bool
    """Whether no value is sent to a partition twice, by the part's own sends or by sends that belong to no part."""


@dataclass(frozen=True, slots=True)
class SettleSmall:
    """Task that writes the small tables of a shard.

    If the shard is split, it also writes the sends without an acknowledged offset, and the operations of these sends
    and of the rows of the small tables.
    """

    layout: Layout
    shard: int
    of_shard: Dealt

    def __call__(self) -> None:
        """Write the tables."""
        for name in tables.SMALL:
            rows = gathered(self.of_shard, name, tables.small_schema(name))
            if rows.num_rows:
                keys = [("log", "ascending"), *((("op_id", "ascending"),) if name == "positions" else ())]
                _write(rows.sort_by(keys), self.layout.small_file(self.shard, name))
        if not self.layout.shards[self.shard].is_cut:
            return
        loose = gathered(self.of_shard, "sends", SENT, LOWEST, 0)
        if loose.num_rows:
            at = pa.array(np.full(loose.num_rows, UNKNOWN))
            _write(loose.append_column("at", at).select(tables.SENDS.names).cast(tables.SENDS),
                   self.layout.small_file(self.shard, "sends"))  # fmt: skip
        operations = _operations(self.of_shard, LOWEST, 0)
        if operations.num_rows:
            _write(operations, self.layout.small_file(self.shard, "operations"))


@dataclass(frozen=True, slots=True)
class SettlePart:
    """Task that writes the records of a part and their operations."""

    layout: Layout
    shard: int
    part: int
    own: Dealt
    of_shard: Dealt

    def __call__(self) -> Settled:
        """Write the records and operations."""
        bounds = bounds_of(self.layout.shards[self.shard], self.part)
        sends = gathered(self.own, "sends", SENT, *bounds["sends"])
        reads = _sorted(gathered(self.own, "reads", SENT, *bounds["reads"]))
        loose = SENT.empty_table()
        if self.layout.shards[self.shard].is_cut:
            loose = gathered(self.of_shard, "sends", SENT, LOWEST, 0)
        settled = self._settled(sends, loose)
        adopted = np.isin(numbers(loose["value"], 0), numbers(reads["value"], 0))
        sends = pa.concat_tables([sends, loose.filter(pa.array(adopted))])
        path_of = self.layout.part_file
        reads = _with_flags(reads, covered(reads, self._positions()), _goes_back(reads))
        _write(_sorted(_placed(sends, reads), "at").select(tables.SENDS.names).cast(tables.SENDS),
               path_of(self.shard, self.part, "sends"))  # fmt: skip
        _write(reads.select(tables.READS.names).cast(tables.READS), path_of(self.shard, self.part, "reads"))
        _write(_operations(self.own, *bounds["operations"]), path_of(self.shard, self.part, "operations"))
        return settled

    def _settled(self, sends: pa.Table, loose: pa.Table) -> Settled:
        """Return the facts about the part's own sends; `loose` are the sends of its log that belong to no part."""
        values = sends["value"].to_numpy()[(sends["flags"].to_numpy() & tables.TOMBSTONE) == 0]
        both = pa.concat_tables([sends, loose])
        known: dict[tuple[str, int], int] = {}
        logs = np.unique(both["log"].to_numpy())
        places = (self.layout.places[log] for log in logs.tolist())
        partition = np.array([known.setdefault((topic, number), len(known)) for topic, _, number in places], np.int32)
        partition = partition[np.searchsorted(logs, both["log"].to_numpy())]
        span = (int(values.min()), int(values.max())) if len(values) else None
        return Settled(span, not values_repeat(both, partition))

    def _positions(self) -> pa.Table:
        positions = gathered(self.of_shard, "positions", tables.small_schema("positions"))
        return positions.sort_by([("log", "ascending"), ("op_id", "ascending")])


def bounds_of(shard: Shard, part: int) -> dict[str, tuple[int, int]]:
    """Return the bounds [low, high) of a part's keys, by table. In a split log they exclude sends of unknown offset."""
    own = shard.parts[part]
    low = own.begin if shard.is_cut else LOWEST
    reads = (LOWEST if part == 0 else own.begin, own.end)
    return {"sends": (low, own.end), "reads": reads, "operations": (low, own.end)}


def _operations(dealt: Dealt, low: int, high: int) -> pa.Table:
    """Return operations, each once, sorted by op_id."""
    rows = gathered(dealt, "operations", KEYED_OPERATIONS, low, high).select(tables.OPERATIONS.names)
    _, first = np.unique(numbers(rows["op_id"], 0), return_index=True)
    return rows.take(pa.array(first))


def _sorted(rows: pa.Table, offset: str = "offset") -> pa.Table:
    """Sort rows by log and offset. Stable sorts are fast here, because the rows are almost in order."""
    log, at = rows["log"].to_numpy(), rows[offset].to_numpy()
    order = np.argsort(at, kind="stable")
    order = order[np.argsort(log[order], kind="stable")]
    return rows.take(pa.array(order))


def _with_flags(reads: pa.Table, is_covered: Flags, back: Flags) -> pa.Table:
    flags = reads["flags"].to_numpy() | np.where(is_covered, tables.COVERED, 0) | np.where(back, tables.BACK, 0)
    return reads.set_column(reads.column_names.index("flags"), "flags", pa.array(flags.astype(np.int16)))


def covered(reads: pa.Table, positions: pa.Table) -> Flags:
    """Whether the poll of each read advanced the position over the read's offset.

    Positions are sorted by log and op_id.
    """
    positions = positions.filter(
        pc.and_(pc.equal(positions["cause"], "read"), pc.less(positions["before"], positions["after"]))
    )
    op_id, log, offset = (reads[name].to_numpy() for name in ("op_id", "log", "offset"))
    known, own = _keys(positions["log"].to_numpy(), numbers(positions["op_id"], 0), log, op_id)
    before, after = numbers(positions["before"], 0), numbers(positions["after"], 0)
    begin, end = np.searchsorted(known, own, side="left"), np.searchsorted(known, own, side="right")
    held = np.zeros(len(own), np.bool_)
    for nth in range(int((end - begin).max(initial=0))):
        rows = np.flatnonzero(begin + nth < end)
        ranges = begin[rows] + nth
        held[rows] |= (before[ranges] <= offset[rows]) & (offset[rows] < after[ranges])
    return held


def _keys(log: Indexes, op_id: Int64s, other_log: Indexes, other_op_id: Int64s) -> tuple[Int64s, Int64s]:
    """Return numbers for the pairs (log, id) in both lists, so that the numbers have the order of the pairs."""
    both = np.concatenate([op_id, other_op_id])
    if not len(both):
        return both, both
    lowest, highest = int(both.min()), int(both.max())
    logs = np.unique(np.concatenate([log, other_log]))
    if highest - lowest < 2**62 // len(logs):
        width = highest - lowest + 1
        return tuple(
            np.searchsorted(logs, one) * width + (ids - lowest) for one, ids in ((log, op_id), (other_log, other_op_id))
        )  # type: ignore[return-value]
    ids = np.unique(both)
    return tuple(
        np.searchsorted(logs, one) * len(ids) + np.searchsorted(ids, own)
        for one, own in ((log, op_id), (other_log, other_op_id))
    )  # type: ignore[return-value]


def _goes_back(reads: pa.Table) -> Flags:
    """Whether each read's operation returned some record of this log at or below the offset of the record before it."""
    log, op_id, seq, offset = (reads[name].to_numpy() for name in ("log", "op_id", "seq", "offset"))
    order = np.lexsort((seq, op_id, log))
    same = (np.diff(log[order]) == 0) & (np.diff(op_id[order]) == 0)
    back = np.zeros(len(log), np.bool_)
    steps_back = np.flatnonzero(same & (np.diff(offset[order]) <= 0))
    if len(steps_back):
        number = np.cumsum(np.append(True, ~same)[: len(order)])
        back[order] = np.isin(number, number[steps_back])
    return back


def _placed(sends: pa.Table, reads: pa.Table) -> pa.Table:
    """Return sends with their offset: the acknowledged one, else the lowest at which their value was read."""
    at = sends["offset"].to_numpy().copy()
    loose = np.flatnonzero(at == UNKNOWN)
    if len(loose) and reads.num_rows:
        values = np.unique(sends["value"].to_numpy()[loose])
        rows = np.flatnonzero(np.isin(reads["value"].to_numpy(), values) & (reads["offset"].to_numpy() != UNKNOWN))
        log, value, offset = (reads[name].to_numpy()[rows] for name in ("log", "value", "offset"))
        order = np.lexsort((offset, value, log))  # the lowest offset of each value comes first
        known, own = _keys(log[order], value[order], sends["log"].to_numpy()[loose], sends["value"].to_numpy()[loose])
        place = np.searchsorted(known, own)
        found = np.append(known, -1)[np.minimum(place, len(known))] == own
        at[loose[found]] = offset[order][place[found]]
    return sends.append_column(pa.field("at", pa.int64(), nullable=False), pa.array(at))


def _write(rows: pa.Table, path: Path) -> None:
    numeric = [f.name for f in rows.schema if pa.types.is_int64(f.type) or pa.types.is_int32(f.type)]
    texts = [f.name for f in rows.schema if pa.types.is_string(f.type)]
    with draft_of(path) as draft:
        pq.write_table(
            rows,
            draft,
            row_group_size=ROW_GROUP_ROWS,
            compression="none" if "flags" in rows.column_names else "lz4",
            use_dictionary=texts,
            column_encoding=dict.fromkeys(numeric, _BY_DIFFERENCE),
        )
