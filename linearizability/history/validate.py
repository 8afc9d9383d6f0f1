"""Holds the rows of a history to the rules of the format, before anything judges them.

A checker may then rely on them: what looks like an anomaly is one, and not a slip of whoever wrote the history. Each
rule is a sentence of the format; a history that keeps them is never refused, however strange what it tells.

Rules of one row are held to a piece of a table at a time; the column rules among them (no nulls, closed sets of values,
lower bounds) are read from `schema`. Rules between rows work on whole columns of numbers. Both take time near linear in
the number of rows.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.history.rows import Flags, Numbers, Piece, broken_row, first_repeat, integers
from linearizability.history.schema import COLUMNS, OPERATION_TABLES, SCHEMAS
from linearizability.history.topic_ids import TopicIds


def validate(history: History) -> None:
    """Raise HistoryError naming table, row and column of the first rule that a history breaks."""
    for piece in _pieces(history, "operations"):
        _check_columns(piece)
    op_ids = _check_operations(history)
    topic_ids = TopicIds.of(history)
    for name in SCHEMAS:
        if name == "operations":
            continue
        for piece in _pieces(history, name):
            _check_columns(piece)
            _check_row(piece, op_ids, topic_ids)
    _check_records(history)
    _check_sends(history, topic_ids)


def _pieces(history: History, name: str) -> Iterator[Piece]:
    first_row = 0
    for table in history.batches(name):
        yield Piece(name, table, first_row)
        first_row += table.num_rows


_PERIODS: Final = {
    "operations": ("invoke_ns", "complete_ns"),
    "states": ("asked_ns", "answered_ns"),
    "faults": ("inject_ns", "heal_ns"),
}


def _check_columns(piece: Piece) -> None:
    for column in COLUMNS[piece.name]:
        values = piece[column.name]
        if column.required and values.null_count:
            piece.refuse_where(pc.is_null(values), column.name, "it may not be")
        if pa.types.is_string(column.type):
            _check_text(piece, column.name)
        if column.values is not None:
            foreign = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=pa.array(column.values))))
            piece.refuse_where(foreign, column.name, f"known are {', '.join(column.values)}")
        if column.minimum is not None:
            piece.refuse_where(pc.less(values, column.minimum), column.name, f"it is never below {column.minimum}")
    if piece.name in _PERIODS:
        begin, end = _PERIODS[piece.name]
        piece.refuse_where(pc.less(piece[end], piece[begin]), end, f"that is before its {begin}")


def _check_text(piece: Piece, column: str) -> None:
    """Parquet does not hold its writer to UTF-8."""
    try:
        piece[column].validate(full=True)
    except pa.ArrowInvalid:
        for row, value in enumerate(piece[column]):
            try:
                value.as_py()
            except UnicodeDecodeError:
                raise broken_row(piece.name, piece.first_row + row, {}, f"{column} is not UTF-8") from None


def _check_row(piece: Piece, op_ids: Numbers, topic_ids: TopicIds) -> None:
    if piece.name in OPERATION_TABLES:
        known = _is_among(op_ids, integers(piece.table, "op_id"))
        piece.refuse_where(pa.chunked_array([~known]), "op_id", "there is no such operation")
    if piece.name in ("records", "positions") and topic_ids.ambiguous:
        several = pc.is_in(piece["topic"], value_set=pa.array(topic_ids.ambiguous))
        unclear = pc.and_(several, pc.is_null(piece["topic_id"]))
        piece.refuse_where(unclear, "topic_id", "the topic of that name was created again, so it must say which")
    if piece.name == "records":
        unsure = pc.and_(pc.is_null(piece["intact"]), pc.equal(piece["direction"], "read"))
        piece.refuse_where(unsure, "intact", "a read says true or false")
    if piece.name == "positions":
        moved = pc.and_(pc.not_equal(piece["cause"], "read"), pc.not_equal(piece["before"], piece["after"]))
        piece.refuse_where(moved, "after", "a move without reading has before = after, the new position")


def _is_among(ascending: Numbers, wanted: Numbers) -> Flags:
    places = np.searchsorted(ascending, wanted)
    found = places < ascending.size
    found[found] = ascending[places[found]] == wanted[found]
    return found


def _check_operations(history: History) -> Numbers:
    """Rules between operations. Returns the op_ids in ascending order."""
    table = history.table("operations", ["op_id", "process", "f", "invoke_ns", "complete_ns"])
    piece = Piece("operations", table)
    op_ids, invoked = integers(table, "op_id"), integers(table, "invoke_ns")
    if (repeat := first_repeat(op_ids)) is not None:
        raise piece.broken_row(repeat[1], f"row {repeat[0]} has the same op_id")
    order = np.argsort(op_ids, kind="stable")
    back = np.flatnonzero(np.diff(invoked[order]) < 0)
    if back.size:
        earlier, later = order[back[0]], order[back[0] + 1]
        what = (
            f"invoke_ns is {invoked[later]}, before op_id {op_ids[earlier]} at {invoked[earlier]}; op_ids ascend by it"
        )
        raise piece.broken_row(int(later), what)
    _check_overlap(piece)
    return op_ids[order]


def _check_overlap(piece: Piece) -> None:
    """Operations of one process follow each other, but for produces, which clients pipeline."""
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


def _check_records(history: History) -> None:
    """No place in an operation is taken twice."""
    op_ids, sends, seqs = [], [], []
    for table in history.batches("records", ["op_id", "seq", "direction"]):
        op_ids.append(integers(table, "op_id"))
        sends.append(pc.equal(table["direction"], "send").to_numpy())
        seqs.append(integers(table, "seq"))
    all_op_ids, all_seqs = np.concatenate(op_ids), np.concatenate(seqs)
    repeat = first_repeat(all_op_ids, np.concatenate(sends).astype(np.int64), all_seqs)
    if repeat is not None:
        keys = {"op_id": int(all_op_ids[repeat[1]]), "seq": int(all_seqs[repeat[1]])}
        raise broken_row("records", repeat[1], keys, f"row {repeat[0]} has the same op_id, direction and seq")


def _check_sends(history: History, topic_ids: TopicIds) -> None:
    """An operation sends to one partition, and a partition is sent a value once."""
    first_row = 0
    rows, op_ids, partitions, values, valued = [], [], [], [], []
    columns = ["op_id", "direction", "topic", "topic_id", "partition", "value"]
    for table in history.batches("records", columns):
        sends = pc.equal(table["direction"], "send").to_numpy()
        rows.append(np.flatnonzero(sends) + first_row)
        first_row += table.num_rows
        op_ids.append(integers(table, "op_id")[sends])
        partitions.append(topic_ids.partition_codes(table)[sends])
        values.append(integers(table, "value")[sends])
        valued.append(pc.is_valid(table["value"]).to_numpy()[sends])
    all_rows, all_partitions = np.concatenate(rows), np.concatenate(partitions)
    _check_one_partition(history, all_rows, np.concatenate(op_ids), all_partitions)
    with_value = np.concatenate(valued)
    repeat = first_repeat(all_partitions[with_value], np.concatenate(values)[with_value])
    if repeat is not None:
        earlier, later = all_rows[with_value][list(repeat)]
        sent = _record(history, int(later))
        what = f"value is {sent['value']}, which row {earlier} sends to the same partition"
        raise broken_row("records", int(later), {"op_id": sent["op_id"], "seq": sent["seq"]}, what)


def _check_one_partition(history: History, rows: Numbers, op_ids: Numbers, partitions: Numbers) -> None:
    order = np.argsort(op_ids, kind="stable")
    strays = np.flatnonzero((np.diff(op_ids[order]) == 0) & (np.diff(partitions[order]) != 0))
    if strays.size:
        row = int(rows[order[strays[0] + 1]])
        sent = _record(history, row)
        what = f"sent to {sent['topic']} partition {sent['partition']}, unlike the record before it in its operation"
        raise broken_row("records", row, {"op_id": sent["op_id"], "seq": sent["seq"]}, what)


def _record(history: History, row: int) -> dict[str, object]:
    """One row of `records`, for a message."""
    for piece in _pieces(history, "records"):
        if row < piece.first_row + piece.table.num_rows:
            found: dict[str, object] = piece.table.slice(row - piece.first_row, 1).to_pylist()[0]
            return found
    raise IndexError(row)
