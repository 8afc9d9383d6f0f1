"""Log of one topic partition of one topic id, with its rows merged into records: the input of every check.

A record is identified by its value. A tombstone has no value, so it is identified by its key and offset. A sent
tombstone cannot be matched with a read in four cases:

- It was not acknowledged, or its offset is unknown.
- It was acknowledged with less than acks=all, because another tombstone of its key may stand at that offset later.
- Several tombstones of its key were acknowledged at its offset.
- The log could have lost content, because a lost tombstone may have had the same key and offset.

If a broken history sends a value twice, the first send by (op_id, seq) counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.columns import (
    NO_EPOCH,
    NO_KEY,
    NO_OFFSET,
    OK,
    Flags,
    Indexes,
    Int32s,
    Int64s,
    LogColumns,
    RecordColumns,
)
from linearizability.anomalies.context import Context
from linearizability.anomalies.coverage import Coverage, coverage_of
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.promise import LASTING_ACKS, NOT_PROMISED, FullIsr, Promise, partition_promise


@dataclass(frozen=True)
class Records:
    """The records of a log, one element each."""

    send: Int32s
    """Row of `LogColumns.sends`, -1 if the record is known only from reads."""
    send_operation: Int32s
    invoke_ns: Int64s
    acknowledged: Flags
    acknowledged_ns: Int64s
    """When its produce completed, NEVER_NS where it was not acknowledged."""
    acknowledged_offset: Int64s
    read: Flags
    read_offset: Int64s
    first_read_ns: Int64s
    first_reader: Int32s
    """The lowest operation that read it; an index above every operation if none did."""
    offset: Int64s
    """The lowest offset at which it was read, else the acknowledged offset."""
    transaction: Int32s
    aborted: Flags
    committed: Flags
    acks_all: Flags
    """Committed, and acknowledged with acks=all."""
    acknowledged_end_ns: Int64s
    """The end of the promise made by an acknowledgement with acks=all; NOT_PROMISED where there was none."""
    read_end_ns: Int64s
    """The end of the promise made by its first read; NOT_PROMISED where there was none."""
    value: Int64s
    valued: Flags
    key: Int32s

    def __len__(self) -> int:
        return len(self.send)

    @property
    def known_operation(self) -> Int32s:
        """The operation by which a record is known: its produce, else the lowest read."""
        return np.where(self.send_operation >= 0, self.send_operation, self.first_reader)

    @property
    def known_from_ns(self) -> Int64s:
        """When each record was first known to be in the log."""
        return np.minimum(self.acknowledged_ns, self.first_read_ns)

    @property
    def promise_end_ns(self) -> Int64s:
        """The later end of the two promises for each record."""
        return np.maximum(self.acknowledged_end_ns, self.read_end_ns)


Result = TypeVar("Result")
Number = TypeVar("Number", bound=np.generic)


class PartitionLog:
    """The rows of a log, and data derived from them. Derived data is computed on first use and kept."""

    def __init__(self, rows: LogColumns, context: Context, explained_values: Int64s | None = None) -> None:
        keeps_content = context.keeps_content(rows.topic)
        self.rows = replace(rows, sends=_without_doubtful_tombstones(rows, keeps_content=keeps_content))
        self.context = context
        self.rules = context.rules(rows.topic)
        self.ambiguous = context.is_ambiguous(rows.topic, rows.topic_id)
        self.explained_values = np.empty(0, np.int64) if explained_values is None else explained_values
        """Sorted values that may have been sent to this log: the topic id of their sends or of this log is unknown."""
        self._results: dict[Callable[..., Any], Any] = {}

    def once(self, function: Callable[["PartitionLog"], Result]) -> Result:
        """Return a function's result for this log, computed on first use."""
        if function not in self._results:
            self._results[function] = function(self)
        result: Result = self._results[function]
        return result

    @cached_property
    def _identities(self) -> tuple[Indexes, Indexes, int]:
        return _identify(self.rows)

    @property
    def sent_ids(self) -> Indexes:
        """The record of each send."""
        return self._identities[0]

    @property
    def read_ids(self) -> Indexes:
        """The record of each read row."""
        return self._identities[1]

    @property
    def record_count(self) -> int:
        """The number of distinct records that were sent or read."""
        return self._identities[2]

    @cached_property
    def records(self) -> Records:
        """The log's records."""
        return _records(self)

    @cached_property
    def coverage(self) -> Coverage:
        """The offsets that the log's reads passed."""
        return coverage_of(self.rows, self.context.moves_ns if self.context.derives_positions else None)

    @cached_property
    def promise(self) -> Promise:
        """The promise table of this partition."""
        return partition_promise(self.rules, self._full_isr())

    @cached_property
    def deleted_from_ns(self) -> int:
        """The earliest time at which the topic may have been deleted."""
        rows = (self.rows.sends, self.rows.reads, self.rows.positions)
        invoke_ns = self.rows.operations.invoke_ns
        first_ns = min(int(invoke_ns[own.operation].min(initial=NEVER_NS)) for own in rows)
        first_ns = min(first_ns, int(self.rows.states.requested_ns.min(initial=NEVER_NS)))
        return self.context.deleted_from_ns(self.rows.topic, self.rows.topic_id, first_ns)

    @cached_property
    def newest_epoch(self) -> int:
        """The highest leader epoch in any row, NO_EPOCH if there is none."""
        rows = (self.rows.states.leader_epoch, self.rows.sends.leader_epoch, self.rows.reads.leader_epoch)
        return max(int(epochs.max(initial=NO_EPOCH)) for epochs in rows)

    @cached_property
    def isr_size(self) -> int:
        """The size of the full ISR: `replication.factor`, else the largest ever returned; 0 if unknown."""
        sizes = (len(isr) for isr in self.rows.states.isr if isr is not None)
        return self.rules.replication_factor or max(sizes, default=0)

    @cached_property
    def replicas(self) -> frozenset[int] | None:
        """The nodes that any ISR listed, if a full ISR was seen; else None."""
        return self._full_isr().replicas

    def settled_reads(self) -> Flags:
        """Whether, per read row, the record was certainly at that offset at the end of the run.

        That is certain if the promise of that read never ended. It is also certain if the read was invoked after
        healing, and no record of a later epoch was read at or below the record's offset. If there is such a record, the
        read may be from a leader that does not know yet that it was deposed: even after healing, such a leader serves a
        log that will be truncated.
        """
        operations, reads = self.rows.operations, self.rows.reads
        kept = self.promise.read.end_ns(operations.complete_ns) == NEVER_NS
        healed = self.context.healed_after_ns
        after_healing = np.ones(len(operations), np.bool_) if healed is None else operations.invoke_ns > healed
        settled: Flags = kept[reads.operation]
        doubtful = after_healing[reads.operation] & ~settled
        if doubtful.any():
            settled |= doubtful & ~_superseded(reads)
        return settled

    def _full_isr(self) -> FullIsr:
        states = self.rows.states
        seen = [(index, isr) for index, isr in enumerate(states.isr) if isr is not None]
        full = [index for index, isr in seen if len(isr) >= self.isr_size > 0]
        replicas = frozenset(node for _, isr in seen for node in isr) if full else None
        return FullIsr(
            replicas,
            tuple(int(states.requested_ns[index]) for index in full),
            tuple(int(states.received_ns[index]) for index in full),
        )


def _superseded(reads: RecordColumns) -> Flags:
    """Whether, per read row, a record of a higher epoch was read at its offset or below: one log cannot have both."""
    placed = np.flatnonzero((reads.offset != NO_OFFSET) & (reads.leader_epoch != NO_EPOCH))
    placed = placed[np.argsort(reads.offset[placed])]
    offsets, epochs = reads.offset[placed], reads.leader_epoch[placed]
    last_of_offset = np.searchsorted(offsets, offsets, side="right") - 1
    superseded = np.zeros(len(reads), np.bool_)
    superseded[placed] = np.maximum.accumulate(epochs)[last_of_offset] > epochs
    return superseded


def _without_doubtful_tombstones(rows: LogColumns, *, keeps_content: bool) -> RecordColumns:
    """Return the sends, without the offsets of those tombstones that cannot be matched with a read at their offset."""
    sends = rows.sends
    tombstones = np.flatnonzero(
        ~sends.valued & (sends.offset != NO_OFFSET) & (rows.operations.outcome[sends.operation] == OK)
    )
    if not len(tombstones):
        return sends
    keys = np.stack([sends.key[tombstones].astype(np.int64), sends.offset[tombstones]])
    _, group, times = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    doubtful = tombstones[
        (times[group] > 1) | (rows.operations.acks[sends.operation[tombstones]] != -1) | (not keeps_content)
    ]
    if not len(doubtful):
        return sends
    offset = sends.offset.copy()
    offset[doubtful] = NO_OFFSET
    return replace(sends, offset=offset)


def _identify(rows: LogColumns) -> tuple[Indexes, Indexes, int]:
    """Return the record of each send and of each read row, and the number of records."""
    sends, reads = rows.sends, rows.reads
    valued = np.concatenate([sends.valued, reads.valued])
    values = pa.array(np.concatenate([sends.value, reads.value]), mask=~valued)
    # The system's allocator frees the memory that hashing used; Arrow's own keeps it.
    encoded = pc.dictionary_encode(values, memory_pool=pa.system_memory_pool())
    ids = encoded.indices.fill_null(-1).to_numpy().copy()
    count = len(encoded.dictionary)
    tombstones = np.flatnonzero(~valued)
    if len(tombstones):
        acknowledged = np.append(rows.operations.outcome[sends.operation] == OK, np.ones(len(reads), np.bool_))
        offset = np.concatenate([sends.offset, reads.offset])[tombstones]
        matched = acknowledged[tombstones] & (offset != NO_OFFSET)
        key = np.concatenate([sends.key, reads.key])[tombstones]
        alone = np.where(matched, -1, np.arange(len(tombstones)))
        order = np.lexsort((alone, key, offset))
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (np.diff(offset[order]) != 0) | (np.diff(key[order]) != 0) | (np.diff(alone[order]) != 0)
        ids[tombstones[order]] = count + np.cumsum(fresh) - 1
        count += int(fresh.sum())
    return ids[: len(sends)], ids[len(sends) :], count


def _records(log: PartitionLog) -> Records:
    rows, context = log.rows, log.context
    operations, sends, reads = rows.operations, rows.sends, rows.reads
    count = log.record_count

    send = np.full(count, -1, np.int32)
    order = _send_order(sends)[::-1]
    send[log.sent_ids[order]] = order
    sent = send >= 0
    send_operation = np.full(count, -1, np.int32)
    send_operation[sent] = sends.operation[send[sent]]

    def from_send(column: npt.NDArray[Number], default: int) -> npt.NDArray[Number]:
        values = np.full(count, default, column.dtype)
        values[sent] = column[send_operation[sent]]
        return values

    value = np.zeros(count, np.int64)
    valued = np.zeros(count, np.bool_)
    key = _key_read(log, count)
    key[log.sent_ids[order]] = sends.key[order]
    for ids, columns in ((log.read_ids, reads), (log.sent_ids, sends)):
        value[ids], valued[ids] = columns.value, columns.valued

    acknowledged = from_send(operations.outcome == OK, False)
    acknowledged_ns = np.where(acknowledged, from_send(operations.complete_ns, NEVER_NS), NEVER_NS)
    acknowledged_offset = np.full(count, NO_OFFSET, np.int64)
    acknowledged_offset[acknowledged] = sends.offset[send[acknowledged]]

    reader_complete_ns = operations.complete_ns[reads.operation]
    read = np.zeros(count, np.bool_)
    read[log.read_ids] = True
    read_offset = np.full(count, NEVER_NS, np.int64)
    known = reads.offset != NO_OFFSET
    np.minimum.at(read_offset, log.read_ids[known], reads.offset[known])
    read_offset[read_offset == NEVER_NS] = NO_OFFSET
    first_read_ns = np.full(count, NEVER_NS, np.int64)
    np.minimum.at(first_read_ns, log.read_ids, reader_complete_ns)
    first_reader = np.full(count, len(operations), np.int32)
    np.minimum.at(first_reader, log.read_ids, reads.operation)

    transaction = from_send(operations.transaction, -1)
    inside = transaction >= 0
    transactions = context.transactions
    aborted = np.zeros(count, np.bool_)
    aborted[inside] = transactions.aborted[transaction[inside]]
    committed = acknowledged | (read & (sent | _is_phantom(log, value, valued)))
    committed[inside] &= transactions.committed[transaction[inside]]

    acks_all = committed & acknowledged & np.isin(from_send(operations.acks, 1), LASTING_ACKS)
    return Records(
        send=send,
        send_operation=send_operation,
        invoke_ns=from_send(operations.invoke_ns, NEVER_NS),
        acknowledged=acknowledged,
        acknowledged_ns=acknowledged_ns,
        acknowledged_offset=acknowledged_offset,
        read=read,
        read_offset=read_offset,
        first_read_ns=first_read_ns,
        first_reader=first_reader,
        offset=np.where(read_offset != NO_OFFSET, read_offset, acknowledged_offset),
        transaction=transaction,
        aborted=aborted,
        committed=committed,
        acks_all=acks_all,
        acknowledged_end_ns=np.where(acks_all, log.promise.acknowledged.end_ns(acknowledged_ns), NOT_PROMISED),
        read_end_ns=np.where(committed & read, log.promise.read.end_ns(first_read_ns), NOT_PROMISED),
        value=value,
        valued=valued,
        key=key,
    )


def _key_read(log: PartitionLog, count: int) -> npt.NDArray[np.int32]:
    """Return, per record, the key that its reads returned; NO_KEY if they differ, because compaction needs one key."""
    lowest, highest = np.full(count, np.iinfo(np.int32).max, np.int32), np.full(count, NO_KEY, np.int32)
    np.minimum.at(lowest, log.read_ids, log.rows.reads.key)
    np.maximum.at(highest, log.read_ids, log.rows.reads.key)
    return np.where(lowest == highest, highest, np.int32(NO_KEY))


def _is_phantom(log: PartitionLog, value: Int64s, valued: Flags) -> Flags:
    """Whether a record without a known send was certainly not sent.

    A record that may have had an unknown send (a tombstone that was not acknowledged, the lost end of an incomplete
    run, an unclear topic id) may have been aborted, so a read alone does not make it committed.
    """
    return valued & log.context.complete & ~np.isin(value, log.explained_values)


def _send_order(sends: RecordColumns) -> Indexes:
    """Return the rows of the sends by (op_id, seq)."""
    step = np.diff(sends.operation)
    if np.all((step > 0) | ((step == 0) & (np.diff(sends.seq) > 0))):
        return np.arange(len(sends))
    return np.lexsort((sends.seq, sends.operation))
