"""Dependencies between transactions, derived from one log, as edges for the cycle anomalies.

The nodes are the committed transactions (`transactions`), except those that a broken history also shows as aborted.
The *placed* records of a log are the records of these transactions whose offsets are known, one per offset (if an
offset has two, that of the lower transaction). After Adya:

- *write-write*: from the writer of a placed record to the writer of the next placed record.
- *write-read*: from the writer of a record to a transaction whose read returned it.
- *read-write*: from a transaction that read the log to the writer of the first placed record at or above the highest
  offset that its reads reached (exclusive end).

No transaction depends on itself. Records written outside transactions are ignored, because the order of a log is
transitive. A read that was invoked after the commit was requested is not part of the transaction. Where rows may belong
to several incarnations of a topic, there are no edges. If there are several edges of one kind from one transaction to
another, the lowest by offset, operations and value is kept.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from linearizability.anomalies.columns import NO_OFFSET, READ_COMMITTED, Flags, Indexes
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.transactions import Transactions
from linearizability.anomalies.whole_run import Facts


class Kind(IntEnum):
    """The kinds of edges, in the order in which they are preferred as evidence."""

    WRITE_WRITE = 0
    COMMITTED_WRITE_READ = 1
    """By a read_committed read; Kafka promises that these have no cycles."""
    WRITE_READ = 2
    """By any other read."""
    READ_WRITE = 3
    PROCESS = 4
    """From a transaction to the next one of its process."""
    REAL_TIME = 5
    """From a transaction to one that began after the end of the first."""


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
"""Edges between two transactions, given by their indexes, each with the record that causes it (for write-write, the
later one) and the two operations."""


_BEFORE_ALL: Final = -(2**63)


def nodes_of(transactions: Transactions) -> Flags:
    """Whether each transaction is a node."""
    nodes: Flags = transactions.committed & ~transactions.aborted
    return nodes


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges in one log, with one kind for all or one for each; transactions, records and operations by index."""

    kind: Kind | npt.NDArray[np.int8]
    source: Indexes
    target: Indexes
    record: Indexes
    source_op: Indexes
    target_op: Indexes


def _reduce(log: PartitionLog) -> pa.Table:
    transaction = log.rows.operations.transaction
    node = np.append(nodes_of(log.context.transactions), False)  # index -1, for no transaction, is False
    if log.ambiguous or not node[transaction].any():
        return EDGES.empty_table()
    records = log.records
    written = records.committed & ~records.aborted & node[records.transaction]
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
    stable = operations.isolation[reader] == READ_COMMITTED
    return _Edges(
        kind=np.where(stable, Kind.COMMITTED_WRITE_READ, Kind.WRITE_READ).astype(np.int8),
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
    """Whether each operation belongs to a transaction that is a node, and was invoked before its commit."""
    operations, transactions = log.rows.operations, log.context.transactions
    until_ns = np.append(np.where(nodes_of(transactions), transactions.commit_begun_ns, _BEFORE_ALL), _BEFORE_ALL)
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
    known = np.where(records.offset[record] == NO_OFFSET, NEVER_NS, records.offset[record])
    value = np.where(records.valued[record], records.value[record], NEVER_NS)
    order = np.lexsort((value, target_op, source_op, known, kind, target, source))
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
