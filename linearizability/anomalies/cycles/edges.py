"""Dependencies between transactions in one log: the edges in which cycle anomalies are searched.

The nodes are the transactions that are committed and not aborted (`transactions`); in a broken history, a transaction
can be both. A record of such a transaction is *placed* if its offset is known. If several of them have one offset, only
that of the lowest transaction is placed. The edges are those of Adya:

- *write-write*: from the writer of a placed record to the writer of the next placed record.
- *write-read*: from the writer of a record to a transaction that read it.
- *read-write*: from a transaction that read the log to the writer of the first placed record that it did not reach. A
  transaction reaches the records below the highest (exclusive) end of its reads.

A read is not part of its transaction if it was invoked after the commit was requested. A transaction has no edge to
itself. If rows of a log may belong to several incarnations of the topic, the log has no edges. Records written outside
transactions are skipped: the order of a log is transitive, so they add no dependency between transactions. Of several
edges of one kind from one transaction to another, only the lowest by offset, operations and value is kept.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from linearizability.anomalies.columns import NO_OFFSET, READ_COMMITTED, Flags, Indexes
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.transactions import Transactions
from linearizability.anomalies.whole_run import Facts


class Kind(IntEnum):
    """Kinds of edges, in the order in which they are preferred as evidence.

    This module derives all but the last two, which result from the times of the transactions (`graph`).
    """

    WRITE_WRITE = 0
    COMMITTED_WRITE_READ = 1
    """Write-read with a read_committed read. Kafka promises that these edges alone form no cycle."""
    WRITE_READ = 2
    """Write-read with any other read."""
    READ_WRITE = 3
    PROCESS = 4
    """From a transaction to the next one of its process."""
    REAL_TIME = 5
    """From a transaction to any one that began after the first had ended."""


EDGES: Final = pa.schema(
    [
        pa.field("source", pa.int32()),
        pa.field("target", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("topic", pa.dictionary(pa.int32(), pa.string())),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("source_op", pa.int64()),
        pa.field("target_op", pa.int64()),
    ]
)
"""Columns of edges. `source` and `target` are indexes of transactions; `source_op` and `target_op` are op_ids. The rest
describes the record that causes the edge; for write-write, that is the later record."""


_BEFORE_ALL: Final = -(2**63)
"""A time before every operation."""
_LAST: Final = 2**63 - 1
"""In place of an unknown offset or a missing value, so that the edge is sorted behind all others."""


def are_nodes(transactions: Transactions) -> Flags:
    """Whether each transaction is a node."""
    flags: Flags = transactions.committed & ~transactions.aborted
    return flags


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges in one log, as columns.

    `kind` has one value for all edges, or one for each. The other columns are indexes of transactions (`source` and
    `target`), of records, and of operations.
    """

    kind: Kind | npt.NDArray[np.int8]
    source: Indexes
    target: Indexes
    record: Indexes
    source_op: Indexes
    target_op: Indexes


def _reduce(log: PartitionLog) -> pa.Table:
    """Return the edges of a log, as rows of EDGES."""
    is_node = np.append(are_nodes(log.context.transactions), False)  # index -1, for no transaction, is False
    if log.ambiguous or not is_node[log.rows.operations.transaction].any():
        return EDGES.empty_table()
    records = log.records
    written = records.committed & ~records.aborted & is_node[records.transaction]
    placed = np.flatnonzero(written & (records.offset != NO_OFFSET))
    keys = (records.value, records.send_operation, records.transaction, records.offset)
    placed = placed[np.lexsort([key[placed] for key in keys])]
    placed = placed[np.flatnonzero(np.diff(records.offset[placed], prepend=NO_OFFSET))]
    return _table(log, [_write_write(log, placed), _write_read(log, written), _read_write(log, placed)])


def _write_write(log: PartitionLog, placed: Indexes) -> _Edges:
    records = log.records
    earlier, later = placed[:-1], placed[1:]
    return _Edges(
        kind=Kind.WRITE_WRITE,
        source=records.transaction[earlier].astype(np.intp),
        target=records.transaction[later].astype(np.intp),
        record=later,
        source_op=records.send_operation[earlier].astype(np.intp),
        target_op=records.send_operation[later].astype(np.intp),
    )


def _write_read(log: PartitionLog, written: Flags) -> _Edges:
    records, reads, operations = log.records, log.rows.reads, log.rows.operations
    rows = np.flatnonzero(written[log.read_ids] & _reads_inside(log)[reads.operation])
    record, reader = log.read_ids[rows].astype(np.intp), reads.operation[rows].astype(np.intp)
    is_read_committed = operations.isolation[reader] == READ_COMMITTED
    return _Edges(
        kind=np.where(is_read_committed, Kind.COMMITTED_WRITE_READ, Kind.WRITE_READ).astype(np.int8),
        source=records.transaction[record].astype(np.intp),
        target=operations.transaction[reader].astype(np.intp),
        record=record,
        source_op=records.send_operation[record].astype(np.intp),
        target_op=reader,
    )


def _read_write(log: PartitionLog, placed: Indexes) -> _Edges:
    records, operations, coverage = log.records, log.rows.operations, log.coverage
    rows = np.flatnonzero(_reads_inside(log)[coverage.operation])
    reader = operations.transaction[coverage.operation[rows]]
    rows = rows[np.lexsort((coverage.operation[rows], -coverage.after[rows], reader))]
    reader = operations.transaction[coverage.operation[rows]]
    first = np.flatnonzero(np.diff(reader, prepend=-1))
    following = np.searchsorted(records.offset[placed], coverage.after[rows[first]], side="left")
    first, following = first[following < len(placed)], following[following < len(placed)]
    record = placed[following]
    return _Edges(
        kind=Kind.READ_WRITE,
        source=reader[first].astype(np.intp),
        target=records.transaction[record].astype(np.intp),
        record=record,
        source_op=coverage.operation[rows[first]].astype(np.intp),
        target_op=records.send_operation[record].astype(np.intp),
    )


def _reads_inside(log: PartitionLog) -> Flags:
    """Whether each operation belongs to a transaction that is a node, and was not invoked after its commit."""
    operations, transactions = log.rows.operations, log.context.transactions
    until_ns = np.append(np.where(are_nodes(transactions), transactions.commit_begun_ns, _BEFORE_ALL), _BEFORE_ALL)
    inside: Flags = operations.invoke_ns <= until_ns[operations.transaction]
    return inside


def _table(log: PartitionLog, parts: list[_Edges]) -> pa.Table:
    """Return the lowest edge of each source, target and kind, as rows of EDGES."""
    records = log.records
    kind = np.concatenate([np.broadcast_to(np.int8(0) + part.kind, len(part.source)) for part in parts])
    source, target, record, source_op, target_op = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("source", "target", "record", "source_op", "target_op")
    )
    offset = np.where(records.offset[record] == NO_OFFSET, _LAST, records.offset[record])
    value = np.where(records.valued[record], records.value[record], _LAST)
    order = np.lexsort((value, target_op, source_op, offset, kind, target, source))
    order = order[source[order] != target[order]]
    repeats = np.zeros(len(order), np.bool_)
    repeats[1:] = np.all([column[order[1:]] == column[order[:-1]] for column in (source, target, kind)], axis=0)
    rows = order[~repeats]
    chosen, op_id = record[rows], log.rows.operations.op_id
    columns = {
        "source": source[rows].astype(np.int32),
        "target": target[rows].astype(np.int32),
        "kind": kind[rows].astype(np.int8),
        "topic": pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), pa.array([log.rows.topic])),
        "partition": np.full(len(rows), log.rows.partition, np.int32),
        "offset": pa.array(records.offset[chosen], mask=records.offset[chosen] == NO_OFFSET),
        "value": pa.array(records.value[chosen], mask=~records.valued[chosen]),
        "source_op": op_id[source_op[rows]],
        "target_op": op_id[target_op[rows]],
    }
    return pa.table(columns, schema=EDGES)


EDGE_FACTS: Final = Facts("transaction-edges", EDGES, _reduce)
