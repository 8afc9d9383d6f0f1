"""Validation of a history's rows against the rules of the format, before any judgement.

A checker may rely on the rules: an anomaly that it finds is no error of the history's writer. Each rule is stated in
docs/history-format.md. A history that keeps all rules, including the limits of the format, is never rejected, however
unusual it is.

Rules for a single row are checked in pieces of a table. Some of them are column rules (no nulls, closed sets of values,
bounds), which come from `schema`. Rules between rows are checked on columns of numbers: those of `operations` on whole
columns, those of `records` on one share of the rows after the other, so that memory stays bounded. The time of all
checks is nearly linear in the number of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.history.rows import (
    SAMPLE_ROWS,
    Flags,
    Numbers,
    Piece,
    RepeatSample,
    broken_row,
    first_repeat,
    integers,
    row_hashes,
)
from linearizability.history.schema import COLUMNS, OPERATION_TABLES, SCHEMAS
from linearizability.history.topic_ids import TopicIds

SHARE_ROWS: Final = 10_000_000
"""The approximate number of records that are compared at once."""
COPIES_MAX: Final = 100
"""The maximum number of equal rows in a large table without a unique key: real rows differ in times and offsets."""
FAULTS_MAX: Final = 100_000
"""The maximum number of faults: the rows of other tables are compared with all faults."""
FARTHEST_NS: Final = 2**62
"""The greatest distance of a time from 0, so that the difference of two times fits 64 bits without a sign."""


def validate(history: History) -> None:
    """Raise HistoryError naming table, row and column of the first rule that a history breaks."""
    for check in checks(history):
        check()


def checks(history: History) -> list[Callable[[], None]]:
    """Return the checks of `validate`, in order; later ones rely on earlier ones."""
    count = history.count("records")
    shares = shares_for(count, SHARE_ROWS)
    return [
        partial(check_sizes, history),
        partial(check_operations, history),
        partial(_check_rows, history),
        *(partial(check, history, share) for check in (_check_places, _check_sends, _check_values) for share in shares),
    ]


def check_sizes(history: History) -> None:
    """Reject a history that would take unbounded time or memory to judge: many repeated rows, or too many faults.

    Only a sample of the rows is compared here. Later checks compare the keys of all operations and records.
    """
    for name in SCHEMAS:
        if name != "faults" and history.count(name) > SAMPLE_ROWS:
            _check_repeats(history, name)
    if (faults := history.count("faults")) > FAULTS_MAX:
        raise broken_row("faults", FAULTS_MAX, {}, f"a history has at most {FAULTS_MAX} faults, this one {faults}")


_KEYS: Final = {"operations": ("op_id",), "records": ("op_id", "direction", "seq")}
_KEY_NAMES: Final = {"operations": "op_id", "records": "op_id, direction and seq"}


def _check_repeats(history: History, name: str) -> None:
    """Reject a table whose sample has two rows with the same key or, without a key, too many equal rows."""
    key = _KEYS.get(name)
    sample, first_row = RepeatSample(1, COPIES_MAX) if key is None else RepeatSample(len(key)), 0
    for table in history.batches(name, key):
        columns = [row_hashes(table)] if key is None else [_key_column(table, column) for column in key]
        if (repeat := sample.find_repeat(first_row, *columns)) is not None:
            earlier, later = repeat
            if key is None:
                raise broken_row(name, later, {}, f"more than {COPIES_MAX} rows are equal to row {earlier}")
            keys = {"op_id": int(columns[0][later - first_row])}
            raise broken_row(name, later, keys, f"row {earlier} has the same {_KEY_NAMES[name]}")
        first_row += table.num_rows


def _key_column(table: pa.Table, name: str) -> Numbers:
    if name == "direction":
        return pc.fill_null(pc.equal(table[name], "send"), False).to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    return integers(table, name)


def check_operations(history: History) -> None:
    """Check `operations` against the rules for single rows and the rules between rows."""
    for piece in pieces(history, "operations"):
        check_columns(piece)
    _check_order(history)


def _check_rows(history: History) -> None:
    op_ids = np.sort(integers(history.table("operations", ["op_id"]), "op_id"))
    topic_ids = TopicIds.of(history)
    for name in SCHEMAS:
        for piece in pieces(history, name) if name != "operations" else ():
            check_columns(piece)
            check_row(piece, op_ids, topic_ids)


@dataclass(frozen=True, slots=True)
class Share:
    """The set of all numbers whose remainder modulo `shares` is `number`."""

    number: int
    shares: int

    def holds(self, numbers: Numbers) -> Flags:
        """Whether each number is in this share."""
        held: Flags = numbers % self.shares == self.number
        return held


def shares_for(rows: int, rows_max: int) -> list[Share]:
    """Return as many shares as are needed so that each has about `rows_max` of the rows at most."""
    count = -(-rows // rows_max)
    return [Share(number, count) for number in range(count)]


def pieces(history: History, name: str) -> Iterator[Piece]:
    """Yield a table in pieces."""
    first_row = 0
    for table in history.batches(name):
        yield Piece(name, table, first_row)
        first_row += table.num_rows


_PERIODS: Final = {
    "operations": ("invoke_ns", "complete_ns"),
    "states": ("asked_ns", "answered_ns"),
    "faults": ("inject_ns", "heal_ns"),
}


def check_columns(piece: Piece) -> None:
    """Check rows against the rules of their columns."""
    for column in COLUMNS[piece.name]:
        values = piece[column.name]
        if column.required and values.null_count:
            piece.reject_where(pc.is_null(values), column.name, "null is not allowed")
        if pa.types.is_string(column.type):
            piece.check_text(column.name)
        if column.values is not None:
            foreign = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=pa.array(column.values))))
            piece.reject_where(foreign, column.name, f"known are {', '.join(column.values)}")
        if column.minimum is not None:
            rule = f"it is never below {column.minimum}" + (", except -1 for unknown" if column.unknown == -1 else "")
            piece.reject_where(pc.less(values, column.minimum), column.name, rule)
            if pa.types.is_int64(column.type):
                rule = f"it is never above {column.maximum}"
                piece.reject_where(pc.greater(values, column.maximum), column.name, rule)
        if column.name.endswith("_ns"):
            far = pc.or_(pc.less(values, -FARTHEST_NS), pc.greater(values, FARTHEST_NS))
            piece.reject_where(far, column.name, f"times lie within {FARTHEST_NS} of 0, a century and a half")
    if piece.name == "operations":
        endless = pc.and_(pc.equal(piece["outcome"], "ok"), pc.is_null(piece["complete_ns"]))
        piece.reject_where(endless, "complete_ns", "an operation that is ok has returned")
    if piece.name in _PERIODS:
        begin, end = _PERIODS[piece.name]
        piece.reject_where(pc.less(piece[end], piece[begin]), end, f"that is before its {begin}")


def check_row(piece: Piece, op_ids: Numbers, topic_ids: TopicIds) -> None:
    """Check rows of a table other than `operations` against the rules for single rows, except column rules.

    `op_ids` has the ids of all operations in ascending order.
    """
    if piece.name in OPERATION_TABLES:
        known = _is_among(op_ids, integers(piece.table, "op_id"))
        piece.reject_where(pa.chunked_array([~known]), "op_id", "there is no such operation")
    if piece.name in ("records", "positions") and topic_ids.ambiguous:
        several = pc.is_in(piece["topic"], value_set=pa.array(topic_ids.ambiguous))
        unclear = pc.and_(several, pc.is_null(piece["topic_id"]))
        piece.reject_where(unclear, "topic_id", "a topic of that name was created again, so the id is required")
    if piece.name == "records":
        unsure = pc.and_(pc.is_null(piece["intact"]), pc.equal(piece["direction"], "read"))
        piece.reject_where(unsure, "intact", "a read has true or false")
    if piece.name == "positions":
        moved = pc.and_(pc.not_equal(piece["cause"], "read"), pc.not_equal(piece["before"], piece["after"]))
        piece.reject_where(moved, "after", "a move without reading has before = after, the new position")


def _is_among(ascending: Numbers, wanted: Numbers) -> Flags:
    places = np.searchsorted(ascending, wanted)
    found = places < ascending.size
    found[found] = ascending[places[found]] == wanted[found]
    return found


def _check_order(history: History) -> None:
    """Check the rules between operations."""
    table = history.table("operations", ["op_id", "process", "f", "invoke_ns", "complete_ns"])
    piece = Piece("operations", table)
    op_ids, invoked = integers(table, "op_id"), integers(table, "invoke_ns")
    if (repeat := first_repeat(op_ids)) is not None:
        raise piece.broken_row(repeat[1], f"row {repeat[0]} has the same op_id")
    order = np.argsort(op_ids, kind="stable")
    back = np.flatnonzero(np.diff(invoked[order]) < 0)
    if back.size:
        earlier, later = order[back[0]], order[back[0] + 1]
        what = f"invoke_ns is {invoked[later]}, before op_id {op_ids[earlier]} at {invoked[earlier]}"
        what += "; op_ids must ascend in the order of invoke_ns"
        raise piece.broken_row(int(later), what)
    _check_overlap(piece)


def _check_overlap(piece: Piece) -> None:
    """Check that operations of one process do not overlap, except produces, which clients pipeline."""
    table = piece.table
    rows = np.flatnonzero(pc.not_equal(table["f"], "produce").to_numpy())
    op_ids, processes = integers(table, "op_id")[rows], integers(table, "process")[rows]
    # An operation that never returned ends where the next one of its process begins.
    invoked = integers(table, "invoke_ns")[rows]
    completed = integers(table, "complete_ns", null=np.iinfo(np.int64).min)[rows]
    order = np.lexsort((op_ids, processes))
    first, second = order[:-1], order[1:]
    overlaps = np.flatnonzero((processes[first] == processes[second]) & (completed[first] > invoked[second]))
    if not overlaps.size:
        return
    before, after = first[overlaps[0]], second[overlaps[0]]
    what = (
        f"invoke_ns is {invoked[after]}, but op_id {op_ids[before]} of its process returned at {completed[before]}; "
        "operations other than produce do not overlap"
    )
    raise piece.broken_row(int(rows[after]), what)


def _check_places(history: History, share: Share) -> None:
    """Check that no two records have the same op_id, direction and seq."""
    found = _Columns()
    for first_row, table in _records(history, ["op_id", "seq", "direction"]):
        op_ids = integers(table, "op_id")
        sends = pc.equal(table["direction"], "send").to_numpy().astype(np.int64)
        found.add(first_row, share.holds(op_ids), op_ids, sends, integers(table, "seq"))
    rows, op_ids, sends, seqs = found.whole()
    repeat = first_repeat(op_ids, sends, seqs)
    if repeat is not None:
        keys = {"op_id": int(op_ids[repeat[1]]), "seq": int(seqs[repeat[1]])}
        what = f"row {rows[repeat[0]]} has the same op_id, direction and seq"
        raise broken_row("records", int(rows[repeat[1]]), keys, what)


def _check_sends(history: History, share: Share) -> None:
    """Check that an operation sends to only one partition."""
    topic_ids, found = TopicIds.of(history), _Columns()
    for first_row, table in _records(history, ["op_id", "direction", "topic", "topic_id", "partition"]):
        op_ids = integers(table, "op_id")
        sends = pc.equal(table["direction"], "send").to_numpy()
        found.add(first_row, sends & share.holds(op_ids), op_ids, topic_ids.partition_codes(table))
    rows, op_ids, partitions = found.whole()
    order = np.argsort(op_ids, kind="stable")
    strays = np.flatnonzero((np.diff(op_ids[order]) == 0) & (np.diff(partitions[order]) != 0))
    if strays.size:
        row = int(rows[order[strays[0] + 1]])
        sent = _record(history, row)
        what = f"sent to {sent['topic']} partition {sent['partition']}, unlike the record before it in its operation"
        raise broken_row("records", row, {"op_id": sent["op_id"], "seq": sent["seq"]}, what)


def _check_values(history: History, share: Share) -> None:
    """Check that no value is sent to a partition twice."""
    topic_ids, found = TopicIds.of(history), _Columns()
    for first_row, table in _records(history, ["direction", "topic", "topic_id", "partition", "value"]):
        values = integers(table, "value")
        sends = pc.and_(pc.equal(table["direction"], "send"), pc.is_valid(table["value"])).to_numpy()
        found.add(first_row, sends & share.holds(values), topic_ids.partition_codes(table), values)
    rows, partitions, values = found.whole()
    repeat = first_repeat(partitions, values)
    if repeat is not None:
        earlier, later = rows[list(repeat)]
        sent = _record(history, int(later))
        what = f"value is {sent['value']}, which row {earlier} sends to the same partition"
        raise broken_row("records", int(later), {"op_id": sent["op_id"], "seq": sent["seq"]}, what)


class _Columns:
    """Columns of numbers, collected in parts. The first column has the number of each row in the table."""

    def __init__(self) -> None:
        self._parts: list[list[Numbers]] = []

    def add(self, first_row: int, wanted: Flags, *columns: Numbers) -> None:
        """Add the wanted rows of a piece that begins at `first_row`."""
        own = [np.flatnonzero(wanted) + first_row, *(column[wanted] for column in columns)]
        self._parts = self._parts or [[] for _ in own]
        for parts, part in zip(self._parts, own, strict=True):
            parts.append(part)

    def whole(self) -> Iterator[Numbers]:
        """Yield each column as one array, and release its parts."""
        while self._parts:
            yield np.concatenate(self._parts.pop(0))


def _records(history: History, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """Yield columns of `records` in pieces, each with the number of its first row."""
    first_row = 0
    for table in history.batches("records", columns):
        yield first_row, table
        first_row += table.num_rows


def _record(history: History, row: int) -> dict[str, object]:
    """Return one row of `records`, for a message."""
    for piece in pieces(history, "records"):
        if row < piece.first_row + piece.table.num_rows:
            found: dict[str, object] = piece.table.slice(row - piece.first_row, 1).to_pylist()[0]
            return found
    raise IndexError(row)
