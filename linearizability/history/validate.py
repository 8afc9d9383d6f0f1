"""Holds the rows of a history to the rules of the format, before anything judges them.

A checker may then rely on them: what looks like an anomaly is one, and not a slip of whoever wrote the history. Each
rule is a sentence of the format; a history that keeps them is never refused, however strange what it tells. All rules
work on whole columns and take time near linear in the number of rows.

The column rules (no nulls, closed sets of values, lower bounds) are read from `schema`; the rest stand here.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.history.rows import Numbers, broken_row, first_repeat, integers, refuse_where
from linearizability.history.schema import COLUMNS, OPERATION_TABLES, SCHEMAS
from linearizability.history.topic_ids import TopicIds


def validate(history: History) -> None:
    """Raise HistoryError naming table, row and column of the first rule that a history breaks."""
    operations = history.table("operations")
    _check_table("operations", operations)
    _check_operations(operations)
    op_ids = operations["op_id"].combine_chunks()
    del operations
    topic_ids = TopicIds.of(history)
    for name in SCHEMAS:
        if name == "operations":
            continue
        table = history.table(name)
        _check_table(name, table)
        if name in OPERATION_TABLES:
            unknown = pc.invert(pc.is_in(table["op_id"], value_set=op_ids))
            refuse_where(table, name, unknown, "op_id", "there is no such operation")
        if name in _RULES:
            _RULES[name](table, topic_ids)


def _check_table(name: str, table: pa.Table) -> None:
    """Rules of single rows."""
    for column in COLUMNS[name]:
        values = table[column.name]
        if column.required and values.null_count:
            refuse_where(table, name, pc.is_null(values), column.name, "it may not be")
        if column.values is not None:
            foreign = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=pa.array(column.values))))
            refuse_where(table, name, foreign, column.name, f"known are {', '.join(column.values)}")
        if column.minimum is not None:
            refuse_where(
                table, name, pc.less(values, column.minimum), column.name, f"it is never below {column.minimum}"
            )
    if name in _PERIODS:
        begin, end = _PERIODS[name]
        refuse_where(table, name, pc.less(table[end], table[begin]), end, f"that is before its {begin}")


_PERIODS: Final = {
    "operations": ("invoke_ns", "complete_ns"),
    "states": ("asked_ns", "answered_ns"),
    "faults": ("inject_ns", "heal_ns"),
}


def _check_operations(table: pa.Table) -> None:
    op_ids, invoked = integers(table, "op_id"), integers(table, "invoke_ns")
    if (repeat := first_repeat(op_ids)) is not None:
        raise broken_row(table, "operations", repeat[1], f"row {repeat[0]} has the same op_id")
    order = np.argsort(op_ids, kind="stable")
    back = np.flatnonzero(np.diff(invoked[order]) < 0)
    if back.size:
        earlier, later = order[back[0]], order[back[0] + 1]
        what = (
            f"invoke_ns is {invoked[later]}, before op_id {op_ids[earlier]} at {invoked[earlier]}; op_ids ascend by it"
        )
        raise broken_row(table, "operations", int(later), what)
    _check_overlap(table)


def _check_overlap(table: pa.Table) -> None:
    """Operations of one process follow each other, but for produces, which clients pipeline."""
    rows = np.flatnonzero(pc.not_equal(table["f"], "produce").to_numpy())
    op_ids, processes = integers(table, "op_id")[rows], integers(table, "process")[rows]
    # An operation that never returned ends where the next one of its process begins.
    invoked = integers(table, "invoke_ns")[rows]
    completed = integers(table, "complete_ns", null=np.iinfo(np.int64).min)[rows]
    order = np.lexsort((op_ids, processes))
    first, second = order[:-1], order[1:]
    overlaps = (processes[first] == processes[second]) & (completed[first] > invoked[second])
    if not overlaps.any():
        return
    place = np.flatnonzero(overlaps)[0]
    before, after = first[place], second[place]
    what = (
        f"invoke_ns is {invoked[after]}, but op_id {op_ids[before]} of its process "
        f"returned at {completed[before]}; operations other than produce do not overlap"
    )
    raise broken_row(table, "operations", int(rows[after]), what)


def _check_records(table: pa.Table, topic_ids: TopicIds) -> None:
    sent = pc.equal(table["direction"], "send")
    unsure = pc.and_not(pc.is_null(table["intact"]), sent)
    refuse_where(table, "records", unsure, "intact", "a read says true or false")
    _check_named(table, "records", topic_ids)
    sends = sent.to_numpy()
    repeat = first_repeat(integers(table, "op_id"), sends.astype(np.int64), integers(table, "seq"))
    if repeat is not None:
        raise broken_row(table, "records", repeat[1], f"row {repeat[0]} has the same op_id, direction and seq")
    rows = np.flatnonzero(sends)
    _check_sends(table, rows, topic_ids.partition_codes(table)[rows])


def _check_sends(table: pa.Table, rows: Numbers, partitions: Numbers) -> None:
    op_ids = integers(table, "op_id")[rows]
    order = np.argsort(op_ids, kind="stable")
    strays = np.flatnonzero((np.diff(op_ids[order]) == 0) & (np.diff(partitions[order]) != 0))
    if strays.size:
        row = int(rows[order[strays[0] + 1]])
        where = f"{table['topic'][row].as_py()} partition {table['partition'][row].as_py()}"
        raise broken_row(table, "records", row, f"sent to {where}, unlike the record before it in its operation")
    valued = pc.is_valid(table["value"]).to_numpy()[rows]
    repeat = first_repeat(partitions[valued], integers(table, "value")[rows[valued]])
    if repeat is not None:
        earlier, later = (int(row) for row in rows[valued][list(repeat)])
        value = table["value"][later].as_py()
        raise broken_row(table, "records", later, f"value is {value}, which row {earlier} sends to the same partition")


def _check_positions(table: pa.Table, topic_ids: TopicIds) -> None:
    _check_named(table, "positions", topic_ids)
    moved = pc.and_(pc.not_equal(table["cause"], "read"), pc.not_equal(table["before"], table["after"]))
    refuse_where(table, "positions", moved, "after", "a move without reading has before = after, the new position")


def _check_named(table: pa.Table, name: str, topic_ids: TopicIds) -> None:
    """A null id stands for the name's only one."""
    if not topic_ids.ambiguous:
        return
    several = pc.is_in(table["topic"], value_set=pa.array(topic_ids.ambiguous))
    unclear = pc.and_(several, pc.is_null(table["topic_id"]))
    refuse_where(table, name, unclear, "topic_id", "the topic of that name was created again, so it must say which")


_RULES: Final[dict[str, Callable[[pa.Table, TopicIds], None]]] = {
    "records": _check_records,
    "positions": _check_positions,
}
