"""The offsets that each read passed, whether or not it returned a record there.

A read covers an offset if it has a row of `positions` with the cause `read` and before <= offset < after. If the
history has no positions, they are derived (`history.positions`).
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
from linearizability.history.positions import Reads, derive_befores


@dataclass(frozen=True, slots=True)
class Coverage:
    """The disjoint ranges of offsets that each read covers, sorted by (operation, before)."""

    operation: Indexes
    before: Int64s
    after: Int64s
    last_stable_offset: Int64s
    """The lowest last stable offset in the read's responses for this range, NEVER_NS (no limit) where unknown."""
    befores: Int64s
    """The starts of all ranges, sorted."""
    afters: Int64s
    """The ends of all ranges, sorted."""

    def depth(self, offsets: Int64s) -> Int64s:
        """Return the number of reads that cover each offset."""
        started = np.searchsorted(self.befores, offsets, side="right")
        return started - np.searchsorted(self.afters, offsets, side="right")

    def covers(self, operation: Indexes, offset: Int64s) -> Flags:
        """Whether, per row, the operation's own ranges cover the offset."""
        begin = np.searchsorted(self.operation, operation, side="left")
        end = np.searchsorted(self.operation, operation, side="right")
        covered = np.zeros(len(operation), np.bool_)
        for nth in range(int((end - begin).max(initial=0))):
            rows = np.flatnonzero(begin + nth < end)
            ranges = begin[rows] + nth
            covered[rows] |= (self.before[ranges] <= offset[rows]) & (offset[rows] < self.after[ranges])
        return covered


def coverage_of(log: LogColumns, moves_ns: Mapping[int, Int64s] | None) -> Coverage:
    """Return the coverage of a log's reads, from recorded positions or, if `moves_ns` is given, from derived ones."""
    if moves_ns is None:
        return _recorded(log.positions, len(log.operations))
    return _derived(log.operations, log.reads, moves_ns)


def _recorded(positions: PositionColumns, operations: int) -> Coverage:
    rows = positions.take(positions.is_read & (positions.before < positions.after))
    rows = rows.take(np.lexsort((rows.before, rows.operation)))
    # The highest end so far inside an operation: a running maximum of ranks, which restarts with each operation.
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


def _derived(operations: OperationColumns, records: RecordColumns, moves_ns: Mapping[int, Int64s]) -> Coverage:
    known = records.take(records.offset != NO_OFFSET)
    known = known.take(np.lexsort((known.seq, known.operation, operations.process[known.operation])))
    begins = np.flatnonzero(np.diff(known.operation, prepend=-1))
    ends = np.append(begins[1:], len(known))[: len(begins)] - 1
    reading = known.operation[begins].astype(np.intp)
    invoke_ns, complete_ns = operations.invoke_ns[reading], operations.complete_ns[reading]
    reads = Reads(
        process=operations.process[reading].astype(np.int64),
        begin_ns=invoke_ns,
        end_ns=np.where(complete_ns == NEVER_NS, invoke_ns, complete_ns),
        first=known.offset[begins],
        last=known.offset[ends],
    )
    before, after = derive_befores(reads, moves_ns), reads.last + 1
    kept = np.flatnonzero(before < after)
    kept = kept[np.argsort(reading[kept], kind="stable")]
    return _coverage(reading[kept], before[kept], after[kept], np.full(len(kept), NEVER_NS, np.int64))


def _coverage(operation: Indexes, before: Int64s, after: Int64s, last_stable_offset: Int64s) -> Coverage:
    return Coverage(operation, before, after, last_stable_offset, np.sort(before), np.sort(after))
