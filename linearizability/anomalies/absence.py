"""The valid reasons for a record to be missing from a read.

The record was aborted; or it is below a log start offset whose request was sent before the read completed; or
retention or compaction may have removed it; or its topic was deleted; or the read is read_committed and the record is
at or beyond the last stable offset, or in a transaction that is still open.

Choices. A log start offset that a response returned, or that DeleteRecords requested, counts from when the request was
sent; a deletion of a topic counts from its invocation. Either may have taken effect from that moment on. A topic has
retention if its `cleanup.policy` contains `delete`, and if `retention.ms` is below Kafka's default of 7 days or
`retention.bytes` is set, on the topic or the cluster. The default of 7 days is assumed never to take effect during a
run: timestamps are not read, so a client that sends records older than 7 days should set `retention.ms=-1`. Retention
removes records from the start of the log only, so it does not explain a gap above a record that the same read returned.
Compaction may remove a record if another one with the same key, or a second copy of the record, stands above it. The
other one does not count if it was aborted, or if its send failed and no read returned it. Compaction may remove any
tombstone; records without a key stay. A read of unknown isolation is judged as if it were read_committed.
"""

from dataclasses import dataclass

import numpy as np

from linearizability.anomalies.columns import (
    FAIL,
    NO_KEY,
    NO_OFFSET,
    READ_UNCOMMITTED,
    Flags,
    Indexes,
    Int64s,
)
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog

_ALWAYS_NS = -(2**63)


@dataclass(frozen=True, slots=True)
class LogStarts:
    """The highest known log start offset, as a step function of time."""

    at_ns: Int64s
    highest: Int64s

    def by(self, time_ns: Int64s) -> Int64s:
        """Return the highest log start returned or requested at or before each time, NO_OFFSET if none."""
        heights: Int64s = np.append(NO_OFFSET, self.highest)[np.searchsorted(self.at_ns, time_ns, side="right")]
        return heights


def log_starts(log: PartitionLog) -> LogStarts:
    """Return the log start offsets of one log, from its positions, its states, and DeleteRecords requests."""
    rows = log.rows
    requests = [
        (request.invoke_ns, request.offset if request.offset >= 0 else NEVER_NS)
        for request in log.context.log_start_requests
        if (request.topic, request.partition) == (rows.topic, rows.partition)
        and log.context.resolve(request.topic, request.topic_id) in (rows.topic_id, None)
    ]
    positions, states = rows.positions, rows.states
    at_ns = np.concatenate(
        [
            rows.operations.invoke_ns[positions.operation],
            states.requested_ns,
            np.array([at for at, _ in requests], np.int64),
        ]
    )
    offset = np.concatenate(
        [positions.log_start_offset, states.log_start_offset, np.array([to for _, to in requests], np.int64)]
    )
    known = np.flatnonzero(offset != NO_OFFSET)
    known = known[np.argsort(at_ns[known], kind="stable")]
    return LogStarts(at_ns[known], np.maximum.accumulate(offset[known]))


def first_returned(log: PartitionLog) -> Int64s:
    """Return, per operation, the lowest offset that it returned; NEVER_NS (above every offset) if it returned none."""
    reads = log.rows.reads
    lowest = np.full(len(log.rows.operations), NEVER_NS, np.int64)
    known = reads.offset != NO_OFFSET
    np.minimum.at(lowest, reads.operation[known], reads.offset[known])
    return lowest


def compacted_from_ns(log: PartitionLog) -> Int64s:
    """Return, per record, the earliest time at which compaction may have removed it; NEVER_NS where it cannot have."""
    records = log.records
    removable = np.full(len(records), NEVER_NS, np.int64)
    keyed = np.flatnonzero(records.key != NO_KEY)
    if not log.rules.compaction or not len(keyed):
        return removable
    failed = np.zeros(len(records), np.bool_)
    sent = records.send >= 0
    failed[sent] = log.rows.operations.outcome[records.send_operation[sent]] == FAIL
    sent_ns = np.where(sent, records.invoke_ns, _ALWAYS_NS)
    never_there = records.aborted | (failed & ~records.read)
    covers_ns = np.where(never_there, NEVER_NS, sent_ns)[keyed]
    # Each record occurs twice: its highest copy covers lower records of the key, and its lowest copy may be covered.
    offset = np.concatenate([_highest_offset(log)[keyed], _known(records.offset)[keyed]])
    may_be_covered = np.repeat([False, True], len(keyed))
    key = np.tile(records.key[keyed].astype(np.int64), 2)
    order = np.lexsort((may_be_covered, offset, key))
    # For each element, the lowest time of the elements of its key from there on: a running minimum, from the back, of
    # the pairs (key, rank of the time). It restarts at each key, because keys descend from the back.
    times, rank = np.unique(np.append(covers_ns, np.full(len(keyed), NEVER_NS))[order], return_inverse=True)
    lowest = times[np.minimum.accumulate((key[order] * len(times) + rank)[::-1])[::-1] % len(times)]
    removable[keyed[order[may_be_covered[order]] - len(keyed)]] = lowest[may_be_covered[order]]
    removable[(records.key != NO_KEY) & ~records.valued] = _ALWAYS_NS
    return removable


def _highest_offset(log: PartitionLog) -> Int64s:
    """Return, per record, the highest known offset of a copy of it; NEVER_NS (above every offset) where unknown."""
    records, reads = log.records, log.rows.reads
    highest = np.maximum(records.offset, records.acknowledged_offset)
    np.maximum.at(highest, log.read_ids, reads.offset)
    return _known(highest)


def _known(offset: Int64s) -> Int64s:
    """Return the offsets, with NEVER_NS (above every offset) where there is none."""
    return np.where(offset == NO_OFFSET, NEVER_NS, offset)


def absent_from_read(
    log: PartitionLog, record: Indexes, reader: Indexes, offset: Int64s, last_stable_offset: Int64s
) -> Flags:
    """Whether, per pair of a record (at an offset) and a reading operation, the record may be absent from the read."""
    records, operations = log.records, log.rows.operations
    complete_ns = operations.complete_ns[reader]
    permitted = absent_at(log, record, offset, complete_ns)
    if log.rules.retention:
        permitted |= offset < log.once(first_returned)[reader]
    stable = operations.isolation[reader] != READ_UNCOMMITTED
    unstable = offset >= last_stable_offset
    transaction = records.transaction[record]
    open_until_ns = np.append(log.context.transactions.open_until_ns, NO_OFFSET)[transaction]  # index -1: never open
    still_open = (transaction >= 0) & (operations.invoke_ns[reader] <= open_until_ns)
    absent: Flags = permitted | (stable & (unstable | still_open))
    return absent


def absent_at(log: PartitionLog, record: Indexes, offset: Int64s, time_ns: Int64s) -> Flags:
    """Whether each record may be absent for every reader at a time, for a reason other than retention."""
    compacted_ns = log.once(compacted_from_ns)[record]
    permitted = log.records.aborted[record] | (offset < log.once(log_starts).by(time_ns))
    permitted |= (compacted_ns <= time_ns) & (compacted_ns != NEVER_NS)
    if log.deleted_from_ns != NEVER_NS:
        permitted |= log.deleted_from_ns <= time_ns
    absent: Flags = permitted
    return absent
