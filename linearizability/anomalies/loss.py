"""Evidence that committed records are gone: pairs of a record and a read (or an end offset) that should show it.

`lost-write`, `unseen`, `offset-mismatch`, `poll-skip` and `torn-transaction` share this evidence. A read is evidence
about an acknowledged record if it completed after the send of the record was invoked. It is evidence about any other
committed record if it was invoked after the first read of the record had completed. A loss breaks a promise if it was
shown before the promise ended; a loss shown later is permitted.

A record is paired with reads only if fewer reads returned it than covered its offset, or if another record has the same
offset. In a valid history there are few such records. Pairs are formed in chunks. Once a record is shown to be lost
while promised, it is left out of further chunks. So a log that was lost entirely takes no longer than a log that was
read entirely.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from linearizability.anomalies.absence import absent_at, absent_from_read
from linearizability.anomalies.columns import NO_EPOCH, NO_OFFSET, Flags, Indexes, Int64s, StateColumns
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.promise import NOT_PROMISED

_PAIRS_MAX: Final = 2_000_000
"""The maximum number of pairs judged at once, except that records with equal offsets stay together."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Per record, whether it was lost."""

    violation: Flags
    permitted: Flags
    """Shown lost, but not while it was promised."""
    covered: Flags
    """Covered by a read that is evidence about it and did not return it."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Records at offsets, each with a read that covers the offset or returned something else there."""

    record: Indexes
    reader: Indexes
    offset: Int64s
    last_stable_offset: Int64s
    covering: Flags
    """Whether the read covers the offset; otherwise it returned another record there."""

    def take(self, rows: Flags) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(*(getattr(self, name)[rows] for name in Pairs.__slots__))


def losses(log: PartitionLog) -> Losses:
    """Judge every committed record of a log that has a known offset."""
    records = log.records
    count = len(records)
    found = Losses(np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.bool_))
    eligible = records.committed & ~records.aborted & (records.offset != NO_OFFSET)
    _from_reads(log, eligible, found)
    _from_end_offsets(log, eligible, found)
    found.permitted[found.violation] = False
    return found


def _from_reads(log: PartitionLog, eligible: Flags, found: Losses) -> None:
    suspects = _suspects(log, eligible)
    for pairs in _pairs(log, suspects, log.records.offset[suspects], lambda: _is_done(log, found)):
        shown, promised = judge_pairs(log, pairs)
        found.violation[pairs.record[promised]] = True
        found.permitted[pairs.record[shown]] = True
        found.covered[pairs.record[pairs.covering & counts_against(log, pairs.record, pairs.reader)]] = True


def unreturned(log: PartitionLog, eligible: Flags, done: Callable[[], Flags] | None = None) -> Iterator[Pairs]:
    """Yield pairs of an eligible record and every read that contradicts it.

    The read covers the record's offset without returning the record, or returned another record there. Records that are
    `done` at the beginning of a chunk are left out of it.
    """
    suspects = _suspects(log, eligible)
    none_done = np.zeros(len(log.records), np.bool_)
    return _pairs(log, suspects, log.records.offset[suspects], done or (lambda: none_done))


def _suspects(log: PartitionLog, eligible: Flags) -> Indexes:
    """Return the eligible records that some read may have missed, sorted by offset."""
    suspects = np.flatnonzero(eligible & (log.once(_has_deficit) | log.once(_shares_offset)))
    return suspects[np.argsort(log.records.offset[suspects], kind="stable")]


def _has_deficit(log: PartitionLog) -> Flags:
    """Whether more reads cover a record's offset than return it there."""
    records = log.records
    deficit = np.zeros(len(records), np.bool_)
    known = np.flatnonzero(records.offset != NO_OFFSET)
    deficit[known] = log.coverage.depth(records.offset[known]) > _times_returned(log)[known]
    return deficit


def _times_returned(log: PartitionLog) -> Int64s:
    """Return the number of reads that cover a record's offset and return it there."""
    reads, ids = log.rows.reads, log.read_ids
    there = np.flatnonzero(reads.offset == log.records.offset[ids])
    step = np.diff(reads.operation[there])
    rising = (step > 0) | ((step == 0) & (np.diff(reads.offset[there]) > 0))
    if not np.all(rising):  # A read that returned one record twice counts once.
        keys = ids[there].astype(np.int64) * len(log.rows.operations) + reads.operation[there]
        there = there[np.unique(keys, return_index=True)[1]]
    there = there[log.coverage.covers(reads.operation[there].astype(np.intp), reads.offset[there])]
    return np.bincount(ids[there], minlength=len(log.records)).astype(np.int64)


def _shares_offset(log: PartitionLog) -> Flags:
    """Whether, per record, another record has the same offset or was read there."""
    records, reads = log.records, log.rows.reads
    elsewhere = (reads.offset != NO_OFFSET) & (reads.offset != records.offset[log.read_ids])
    own = records.offset[records.offset != NO_OFFSET]
    offsets, times = np.unique(own, return_counts=True)
    shared = np.union1d(offsets[times > 1], reads.offset[elsewhere])
    return np.isin(records.offset, shared)


def _pairs(
    log: PartitionLog,
    suspects: Indexes,
    offset: Int64s,
    done: Callable[[], Flags],
    returned_elsewhere: bool = False,
) -> Iterator[Pairs]:
    """Yield the pairs of `unreturned` for suspects at given offsets; `suspects` and `offset` are sorted by offset.

    Suspects that are `done` at the beginning of a chunk are left out of it.
    """
    if not len(suspects):
        return
    coverage, reads = log.coverage, log.rows.reads
    near = np.empty(0, np.intp) if returned_elsewhere else np.flatnonzero(np.isin(reads.offset, offset))
    begins = np.concatenate([coverage.before, reads.offset[near]])
    ends = np.concatenate([coverage.after, reads.offset[near] + 1])
    readers = np.concatenate([coverage.operation, reads.operation[near]])
    stable = np.concatenate([coverage.last_stable_offset, np.full(len(near), NEVER_NS, np.int64)])
    returned_id = np.concatenate([np.full(len(coverage.operation), -1, np.intp), log.read_ids[near]])
    returns = np.empty(0, np.int64) if returned_elsewhere else _returned(log, suspects)
    at = 0
    while at < len(begins):
        open_rows = ~done()[suspects]
        open_suspects, open_offset = suspects[open_rows], offset[open_rows]
        low = np.searchsorted(open_offset, begins[at:])
        counts = np.searchsorted(open_offset, ends[at:]) - low
        taken = int(np.searchsorted(np.cumsum(counts), _PAIRS_MAX, side="right"))
        begin, at = at, at + taken
        if not taken:  # One read covers more pairs than the limit: the rest of its range is left for the next chunk.
            counts[0] = _within_limit(open_offset, int(low[0]), int(counts[0]))
            begins[at] = open_offset[low[0] + counts[0] - 1] + 1
            taken = 1
        low, counts = low[:taken], counts[:taken]
        row = np.repeat(np.arange(begin, begin + taken), counts)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        index = np.repeat(low, counts) + nth
        record, reader = open_suspects[index], readers[row].astype(np.intp)
        covering = returned_id[row] < 0
        kept = np.where(covering, ~_has_returned(log, returns, record, reader), returned_id[row] != record)
        yield Pairs(record[kept], reader[kept], open_offset[index][kept], stable[row][kept], covering[kept])


def _within_limit(offset: Int64s, low: int, count: int) -> int:
    """Return how many of the `count` sorted offsets from `low` on to take: about `_PAIRS_MAX`, equal ones together."""
    last = offset[low + min(count, _PAIRS_MAX) - 1]
    return min(count, int(np.searchsorted(offset, last, side="right")) - low)


def pairs_at(log: PartitionLog, suspects: Indexes, offset: Int64s, returned_elsewhere: bool = False) -> Iterator[Pairs]:
    """Yield all pairs of `unreturned` for suspects at given offsets; `suspects` and `offset` are sorted by offset.

    With `returned_elsewhere`, a record is paired with every read that covers the offset, even if the read returned the
    record at another offset. Reads that returned another record at the offset are then no separate pairs.
    """
    none_done = np.zeros(len(log.records), np.bool_)
    return _pairs(log, suspects, offset, lambda: none_done, returned_elsewhere)


def _returned(log: PartitionLog, suspects: Indexes) -> Int64s:
    """Return sorted keys of (suspect, reading operation), for reads that returned the suspect at any offset."""
    wanted = np.zeros(len(log.records), np.bool_)
    wanted[suspects] = True
    rows = wanted[log.read_ids]
    keys = log.read_ids[rows].astype(np.int64) * len(log.rows.operations) + log.rows.reads.operation[rows]
    return np.unique(keys)


def _has_returned(log: PartitionLog, returns: Int64s, record: Indexes, reader: Indexes) -> Flags:
    keys = record.astype(np.int64) * len(log.rows.operations) + reader
    place = np.searchsorted(returns, keys)
    inside = place < len(returns)
    inside[inside] = returns[place[inside]] == keys[inside]
    return inside


def counts_against(log: PartitionLog, record: Indexes, reader: Indexes) -> Flags:
    """Whether, per pair, the read is evidence about the record, as this module's docstring defines it."""
    records, operations = log.records, log.rows.operations
    counts: Flags = np.where(
        records.acknowledged[record],
        operations.complete_ns[reader] >= records.invoke_ns[record],
        operations.invoke_ns[reader] >= records.first_read_ns[record],
    )
    return counts


def judge_pairs(log: PartitionLog, pairs: Pairs) -> tuple[Flags, Flags]:
    """Return, per pair, whether it shows the record lost, and whether a promise was still in force then."""
    records, operations = log.records, log.rows.operations
    record, reader = pairs.record, pairs.reader
    shown = counts_against(log, record, reader) & ~absent_from_read(
        log, record, reader, pairs.offset, pairs.last_stable_offset
    )
    complete_ns = operations.complete_ns[reader]
    by_acknowledgement = records.acks_all[record] & before_end(complete_ns, records.acknowledged_end_ns[record])
    by_read = (operations.invoke_ns[reader] >= records.first_read_ns[record]) & before_end(
        complete_ns, records.read_end_ns[record]
    )
    return shown, shown & (by_acknowledgement | by_read)


def before_end(time_ns: Int64s, end_ns: Int64s) -> Flags:
    """Whether a promise was still in force at a time."""
    kept: Flags = (time_ns < end_ns) | (end_ns == NEVER_NS)
    return kept


def witnesses(log: PartitionLog, record: int, offset: int) -> tuple[Indexes, Flags]:
    """Return every read that shows one record missing at an offset, and whether a promise was in force then."""
    parts = [
        (pairs.reader[shown], promised[shown])
        for pairs in pairs_at(log, np.array([record]), np.array([offset]))
        for shown, promised in [judge_pairs(log, pairs)]
    ]
    if not parts:
        return np.empty(0, np.intp), np.empty(0, np.bool_)
    return np.concatenate([reader for reader, _ in parts]), np.concatenate([promised for _, promised in parts])


def _from_end_offsets(log: PartitionLog, eligible: Flags, found: Losses) -> None:
    """Find records at or above an end offset that the leader of the newest epoch returned after healing.

    A topic with retention is not judged by end offsets.
    """
    records, states = log.records, log.rows.states
    healed = log.context.healed_after_ns
    after_healing = np.ones(len(states), np.bool_) if healed is None else states.requested_ns > healed
    ends = states.take(
        (states.end_offset != NO_OFFSET)
        & after_healing
        & (states.leader_epoch == log.newest_epoch)
        & (log.newest_epoch != NO_EPOCH)
    )
    if not len(ends) or log.rules.retention:
        return
    ends = ends.take(np.argsort(ends.requested_ns, kind="stable"))
    lowest = np.append(np.minimum.accumulate(ends.end_offset[::-1])[::-1], NEVER_NS)
    following = np.searchsorted(ends.requested_ns, records.known_from_ns)
    suspects = np.flatnonzero(eligible & ~_readable(log, healed) & (lowest[following] <= records.offset))
    for index in range(len(ends)):
        suspects = suspects[~_is_done(log, found)[suspects]]
        shown, promised = _judge_end_offset(log, suspects, ends.take(np.array([index])))
        found.permitted[suspects[shown]] = True
        found.violation[suspects[promised]] = True


def _readable(log: PartitionLog, healed_ns: int | None) -> Flags:
    """Whether an acknowledged record was returned at its offset by a read that was sent after healing.

    Then an end offset at or below it is wrong, and the record is not lost: `stale-end-offset` reports the response.
    """
    records, reads, operations = log.records, log.rows.reads, log.rows.operations
    there = reads.offset == records.offset[log.read_ids]
    if healed_ns is not None:
        there &= operations.invoke_ns[reads.operation] > healed_ns
    readable = np.zeros(len(records), np.bool_)
    readable[log.read_ids[there]] = True
    return readable & records.acknowledged


def _judge_end_offset(log: PartitionLog, record: Indexes, end: StateColumns) -> tuple[Flags, Flags]:
    """Return, per record, whether one end offset shows it lost, and whether a promise was still in force then."""
    records = log.records
    sent_ns, received_ns = end.requested_ns, end.received_ns
    offset = records.offset[record]
    shown = (
        (sent_ns >= records.known_from_ns[record])
        & (end.end_offset <= offset)
        & ~absent_at(log, record, offset, np.broadcast_to(received_ns, offset.shape))
    )
    by_acknowledgement = (sent_ns >= records.acknowledged_ns[record]) & before_end(
        received_ns, records.acknowledged_end_ns[record]
    )
    by_read = (sent_ns >= records.first_read_ns[record]) & before_end(received_ns, records.read_end_ns[record])
    return shown, shown & (by_acknowledgement | by_read)


def _is_done(log: PartitionLog, found: Losses) -> Flags:
    """Whether the judgement of a record is final: it is lost although promised, or lost and never promised."""
    done: Flags = found.violation | (found.permitted & (log.records.promise_end_ns == NOT_PROMISED))
    return done
