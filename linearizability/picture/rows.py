"""Rows of a history for a picture of one piece of evidence, read without loading the whole history into memory.

`outline` reads a few columns of all operations, to select the window. The other functions read all columns, but only
for the operations in the window, the log around the evidence, and the states of the partition.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.history.reader import History
from linearizability.judgement import Evidence

Row = dict[str, Any]
Int64s = npt.NDArray[np.int64]

_BESIDE: Final = ("begin_txn", "commit_txn", "abort_txn", "init_producer_id", "subscribe", "assign", "seek")
"""Operations that touch no partition, but determine the meaning of the partition's operations."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The operations from which the window is selected, in the order of their invocations.

    `operations` is the number of all operations of the history, and `origin_ns` is their earliest invocation.
    """

    op_ids: Int64s
    invoke_ns: Int64s
    operations: int
    origin_ns: int

    def places(self, op_ids: Collection[int]) -> list[int]:
        """Return the indexes of some operations, in the order of `op_ids`. Absent ones are left out."""
        found = (np.flatnonzero(self.op_ids == op_id) for op_id in op_ids)
        return [int(indexes[0]) for indexes in found if indexes.size]


def outline(history: History, evidence: Evidence) -> Outline:
    """Return the operations from which the window is selected: if the evidence has no topic, all operations."""
    touching = _touching(history, evidence)
    columns = ["op_id", "invoke_ns", "f", "process", "topic", "partition"]
    kept, operations, origin_ns = [], 0, 2**63 - 1
    processes = _processes(history, touching)
    for table in history.batches("operations", columns):
        operations += table.num_rows
        if table.num_rows:
            origin_ns = min(origin_ns, pc.min(table["invoke_ns"]).as_py())
        wanted = pc.is_in(table["op_id"], value_set=pa.array(evidence.op_ids, pa.int64()))
        if evidence.topic is None:
            wanted = pc.is_valid(table["op_id"])
        else:
            beside = pc.and_(pc.is_in(table["f"], value_set=pa.array(_BESIDE)), pc.is_in(table["process"], processes))
            for mask in (pc.is_in(table["op_id"], value_set=touching), beside, _in_partition(table, evidence)):
                wanted = pc.or_(wanted, pc.fill_null(mask, False))
        kept.append(table.filter(wanted).select(columns[:2]))
    table = pa.concat_tables(kept).sort_by([("invoke_ns", "ascending"), ("op_id", "ascending")])
    return Outline(
        op_ids=np.asarray(table["op_id"].to_numpy(), np.int64),
        invoke_ns=np.asarray(table["invoke_ns"].to_numpy(), np.int64),
        operations=operations,
        origin_ns=origin_ns if operations else 0,
    )


def operations(history: History, op_ids: Sequence[int]) -> list[Row]:
    """Return some operations, sorted by op_id."""
    rows = _rows(history, "operations", lambda table: _among(table, op_ids))
    return sorted(rows, key=lambda row: int(row["op_id"]))


def partition_rows(history: History, name: str, evidence: Evidence, op_ids: Sequence[int]) -> list[Row]:
    """Return the rows of some operations in the partition, from the table `name`: `records` or `positions`."""
    return list(_rows(history, name, lambda table: pc.and_(_among(table, op_ids), _in_partition(table, evidence))))


def operation_rows(history: History, name: str, op_ids: Sequence[int]) -> list[Row]:
    """Return the rows of some operations in all partitions, from the table `name`."""
    return list(_rows(history, name, lambda table: _among(table, op_ids)))


def records_near(history: History, evidence: Evidence, offsets: Collection[int]) -> list[Row]:
    """Return the partition's records at some offsets, and the records with the value of the evidence at any offset."""
    at = pa.array(sorted(offsets), pa.int64())

    def wanted(table: pa.Table) -> pa.ChunkedArray:
        mask = pc.is_in(table["offset"], value_set=at)
        if evidence.value is not None:
            mask = pc.or_(mask, pc.fill_null(pc.equal(table["value"], evidence.value), False))
        return pc.and_(mask, _in_partition(table, evidence))

    return list(_rows(history, "records", wanted))


def reads_covering(history: History, evidence: Evidence, offsets: Collection[int]) -> list[Row]:
    """Return the rows of `positions` for reads in the partition that cover at least one of the offsets."""
    ordered = sorted(offsets)
    begins = [offset for offset in ordered if offset - 1 not in offsets]
    ends = [offset for offset in ordered if offset + 1 not in offsets]

    def wanted(table: pa.Table) -> pa.ChunkedArray:
        mask = pc.less(table["after"], 0)
        for low, high in zip(begins, ends, strict=True):
            mask = pc.or_(mask, pc.and_(pc.less_equal(table["before"], high), pc.greater(table["after"], low)))
        return pc.and_(pc.and_(mask, pc.equal(table["cause"], "read")), _in_partition(table, evidence))

    return list(_rows(history, "positions", wanted))


def states(history: History, evidence: Evidence) -> list[Row]:
    """Return the states of the partition that nodes reported, by time."""
    rows = _rows(history, "states", lambda table: pc.fill_null(_in_partition(table, evidence), False))
    return sorted(rows, key=lambda row: (int(row["asked_ns"]), int(row["answered_ns"])))


def _rows(history: History, name: str, wanted: Callable[[pa.Table], pa.ChunkedArray]) -> Iterator[Row]:
    for table in history.batches(name):
        yield from table.filter(wanted(table)).to_pylist()


def _among(table: pa.Table, op_ids: Sequence[int]) -> pa.ChunkedArray:
    return pc.is_in(table["op_id"], value_set=pa.array(op_ids, pa.int64()))


def _in_partition(table: pa.Table, evidence: Evidence) -> pa.ChunkedArray:
    if evidence.partition is None:
        return pc.fill_null(pc.equal(table["topic"], evidence.topic), False)
    return pc.and_(pc.equal(table["topic"], evidence.topic), pc.equal(table["partition"], evidence.partition))


def _touching(history: History, evidence: Evidence) -> pa.Array:
    """Return the op_ids of all operations with a record, a position or a group offset of the partition."""
    found: list[Int64s] = [np.empty(0, np.int64)]
    if evidence.topic is not None:
        for name in ("records", "positions", "offsets"):
            for table in history.batches(name, ["op_id", "topic", "partition"]):
                own = table.filter(pc.fill_null(_in_partition(table, evidence), False))["op_id"]
                found.append(np.unique(own.to_numpy()))
    return pa.array(np.unique(np.concatenate(found)))


def _processes(history: History, op_ids: pa.Array) -> pa.Array:
    """Return the processes of some operations."""
    found: set[int] = set()
    for table in history.batches("operations", ["op_id", "process"]):
        found.update(pc.unique(table.filter(pc.is_in(table["op_id"], value_set=op_ids))["process"]).to_pylist())
    return pa.array(sorted(found), pa.int32())
