"""Which offsets each read passed over, whether or not it returned a record there.

An offset is covered by a read when before <= offset < after and the cause is read. Where the history has no positions
they are derived, as the format says: a read starts where the process's last one in that partition ended, if it was not
assigned and did not seek since, else at its own first record; it ends after its last record.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from linearizability.anomalies.columns import (
    NO_OFFSET,
    Flags,
    Indexes,
    Int64s,
    LogColumns,
    OperationColumns,
    PositionColumns,
    RecordColumns,
)
from linearizability.anomalies.faults import NEVER_NS


@dataclass(frozen=True, slots=True)
class Coverage:
    """Disjoint ranges of each read, sorted by (operation, before)."""

    operation: Indexes
    before: Int64s
    after: Int64s
    last_stable_offset: Int64s
    """The lowest that the read's answers over this range gave, NEVER_NS (no limit) where unknown."""
    befores: Int64s
    """The starts of all ranges, sorted."""
    afters: Int64s
    """The ends of all ranges, sorted."""

    def depth(self, offsets: Int64s) -> Int64s:
        """How many reads cover each offset."""
        started = np.searchsorted(self.befores, offsets, side="right")
        return started - np.searchsorted(self.afters, offsets, side="right")

    def holds(self, operation: Indexes, offset: Int64s) -> Flags:
        """Whether an operation's own ranges cover an offset, row by row."""
        begin = np.searchsorted(self.operation, operation, side="left")
        end = np.searchsorted(self.operation, operation, side="right")
        held = np.zeros(len(operation), np.bool_)
        for nth in range(int((end - begin).max(initial=0))):
            rows = np.flatnonzero(begin + nth < end)
            ranges = begin[rows] + nth
            held[rows] |= (self.before[ranges] <= offset[rows]) & (offset[rows] < self.after[ranges])
        return held


def coverage_of(log: LogColumns, moves_ns: Mapping[int, Int64s] | None) -> Coverage:
    """The coverage of a log's reads; `moves_ns` is given where positions are to be derived."""
    if moves_ns is None:
        return _recorded(log.positions, len(log.operations))
    return _derived(log.operations, log.reads, moves_ns)


def _recorded(positions: PositionColumns, operations: int) -> Coverage:
    rows = positions.take(positions.is_read & (positions.before < positions.after))
    rows = rows.take(np.lexsort((rows.before, rows.operation)))
    # The highest end so far inside an operation: a running maximum of ranks that restart with each operation.
    ends, rank = np.unique(rows.after, return_inverse=True)
    running = np.maximum.accumulate(rows.operation.astype(np.int64) * len(ends) + rank)
    first = np.ones(len(rows), np.bool_)
    if len(rows):
        reached = ends[running % len(ends)][:-1]
        first[1:] = (np.diff(rows.operation) != 0) | (rows.before[1:] > reached)
    starts = np.flatnonzero(first)
    stable = np.where(rows.last_stable_offset == NO_OFFSET, NEVER_NS, rows.last_stable_offset)
    return _coverage(
        rows.operation[starts].astype(np.intp),
        rows.before[starts],
        np.maximum.reduceat(rows.after, starts) if len(starts) else rows.after,
        np.minimum.reduceat(stable, starts) if len(starts) else stable,
    )


def _derived(operations: OperationColumns, reads: RecordColumns, moves_ns: Mapping[int, Int64s]) -> Coverage:
    known = reads.take(reads.offset != NO_OFFSET)
    known = known.take(np.lexsort((known.seq, known.operation)))
    last = np.flatnonzero(np.append(np.diff(known.operation) != 0, True)[: len(known)])
    reading = known.operation[last].astype(np.intp)
    before, after = known.offset[np.append(0, last[:-1] + 1)[: len(last)]], known.offset[last] + 1
    # By process, then in the order of the calls.
    order = np.argsort(operations.process[reading], kind="stable")
    reading, before, after = reading[order], before[order], after[order]
    follows = _follows(operations, reading, moves_ns)
    before[1:] = np.where(follows[1:], after[:-1], before[1:])
    kept = np.flatnonzero(before < after)
    kept = kept[np.argsort(reading[kept], kind="stable")]
    return _coverage(reading[kept], before[kept], after[kept], np.full(len(kept), NEVER_NS, np.int64))


def _follows(operations: OperationColumns, reading: Indexes, moves_ns: Mapping[int, Int64s]) -> Flags:
    """Per read, by process and call: whether it began where the one before it ended.

    A move inside the one before counts as since: nobody knows whether it came before or after the records. The derived
    range is then smaller, which can hide an anomaly and never makes one up.
    """
    process, invoke_ns = operations.process[reading], operations.invoke_ns[reading]
    complete_ns = operations.complete_ns[reading]
    ended_ns = np.where(complete_ns == NEVER_NS, invoke_ns, complete_ns)
    follows = np.zeros(len(reading), np.bool_)
    follows[1:] = process[1:] == process[:-1]
    for number in np.unique(process):
        moves = moves_ns.get(int(number))
        if moves is not None:
            own = np.flatnonzero(process == number)
            by_now = np.searchsorted(moves, ended_ns[own][1:], side="right")
            moved = by_now > np.searchsorted(moves, invoke_ns[own][:-1], side="left")
            follows[own[1:][moved]] = False
    return follows


def _coverage(operation: Indexes, before: Int64s, after: Int64s, last_stable_offset: Int64s) -> Coverage:
    return Coverage(operation, before, after, last_stable_offset, np.sort(before), np.sort(after))
