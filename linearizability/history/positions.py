"""What reads covered, where a history does not say: the table `positions` derived from records and operations.

A read starts where the process's last one in that partition ended, if the process had no assign, seek or assignment
event since, else at its own first record; it ends after its last record. An event that falls inside the last read
counts as since, because nobody knows whether it came before or after the records: the derived read then starts later,
and covers less, which can hide an anomaly and never make one up.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.history.rows import Flags, Numbers, integers
from linearizability.history.schema import SCHEMAS
from linearizability.history.topic_ids import TopicIds

MOVES: Final = ("assign", "incremental_assign", "incremental_unassign", "seek", "unassign")
"""Operations after which a process may read from elsewhere."""


def derive_positions(history: History) -> pa.Table:
    """The derived table: one row per read operation and partition it returned records of, ordered by op_id.

    It has the types of `positions`, with topic ids filled in where they are clear. Raises HistoryError where a file
    cannot be read.
    """
    topic_ids = TopicIds.of(history)
    reads = _reads(history, topic_ids)
    operations = history.table("operations", ["op_id", "process", "f", "invoke_ns", "complete_ns"]).sort_by("op_id")
    op_ids = integers(operations, "op_id")
    places = np.searchsorted(op_ids, integers(reads, "op_id"))
    processes = integers(operations, "process")
    partitions = topic_ids.partition_codes(reads)
    order = np.lexsort((integers(reads, "op_id"), partitions, processes[places]))
    reads, places, partitions = reads.take(pa.array(order)), places[order], partitions[order]
    first, end = integers(reads, "offset_first"), integers(reads, "offset_last") + 1

    continued = np.zeros(len(places), np.bool_)
    same_process = processes[places][1:] == processes[places][:-1]
    continued[1:] = same_process & (partitions[1:] == partitions[:-1])
    continued[1:] &= ~_moved_between(history, operations, places[:-1], places[1:])
    before = first.copy()
    before[continued] = end[:-1][continued[1:]]
    return _table(reads, before, end)


def _reads(history: History, topic_ids: TopicIds) -> pa.Table:
    """Per read operation and partition: the offsets of its first and its last record, in the order it gave them."""
    columns = ["op_id", "seq", "direction", "topic", "topic_id", "partition", "offset"]
    records = history.table("records", columns)
    records = records.filter(pc.and_(pc.equal(records["direction"], "read"), pc.is_valid(records["offset"])))
    in_order = topic_ids.fill(records).take(
        pa.array(np.lexsort((integers(records, "seq"), integers(records, "op_id"))))
    )
    grouped = in_order.group_by(["op_id", "topic", "topic_id", "partition"], use_threads=False)
    return grouped.aggregate([("offset", "first"), ("offset", "last")])


def _moved_between(history: History, operations: pa.Table, last: Numbers, this: Numbers) -> Flags:
    """Per pair of reads (rows of `operations`, of one process): whether it had a move between, or an event."""
    processes, invoked = integers(operations, "process"), integers(operations, "invoke_ns")
    is_move = pc.is_in(operations["f"], value_set=pa.array(MOVES)).to_numpy()
    moves = _Moments(processes[is_move], np.flatnonzero(is_move))
    ended = pc.coalesce(operations["complete_ns"], operations["invoke_ns"]).to_numpy()
    events = history.table("assignments", ["at_ns", "process"])
    told = _Moments(integers(events, "process"), integers(events, "at_ns"))
    process = processes[last]
    return moves.any_between(process, last, this) | told.any_between(process, invoked[last], ended[this])


class _Moments:
    """When things happened to processes, to be asked about many periods at once."""

    def __init__(self, processes: Numbers, moments: Numbers) -> None:
        order = np.lexsort((moments, processes))
        self._processes, self._moments = processes[order], moments[order]
        self._kinds = np.unique(self._processes)

    def any_between(self, processes: Numbers, begins: Numbers, ends: Numbers) -> Flags:
        """Per row: whether that process has a moment from its begin to its end, both included."""
        found = np.zeros(len(processes), np.bool_)
        for process in self._kinds:
            rows = np.flatnonzero(processes == process)
            low, high = np.searchsorted(self._processes, [process, process + 1])
            own = self._moments[low:high]
            after = np.searchsorted(own, ends[rows], side="right")
            found[rows] = after > np.searchsorted(own, begins[rows], side="left")
        return found


def _table(reads: pa.Table, before: Numbers, after: Numbers) -> pa.Table:
    schema = SCHEMAS["positions"]
    unknown = pa.nulls(len(before), pa.int64())
    columns = {
        "op_id": reads["op_id"],
        "topic": reads["topic"],
        "topic_id": reads["topic_id"],
        "partition": reads["partition"],
        "before": before,
        "after": after,
        "cause": pa.array(["read"] * len(before), pa.string()),
        "high_watermark": unknown,
        "last_stable_offset": unknown,
        "log_start_offset": unknown,
    }
    return pa.table(columns, schema=schema).sort_by("op_id")
