"""Steps of consumers through a log, from one poll to the next.

A step leads from the position where a poll left a consumer to the position where the next poll began. After an
operation such as seek or assign, a reset or an assignment event the consumer may be anywhere. So there is no step if
the process had, or may have had, one of these between the two polls. Only polls count, because a fetch names the offset
from which it reads.
"""

from dataclasses import dataclass

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags, Indexes, Int64s
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog


@dataclass(frozen=True, slots=True)
class Steps:
    """One element per pair of successive polls of one consumer, or of successive records of one poll, in any order."""

    earlier: Indexes
    later: Indexes
    left: Int64s
    """The position after the earlier poll or record."""
    reached: Int64s
    """The position at which the later poll began, or the offset of the later record."""

    def take(self, rows: Indexes | Flags) -> "Steps":
        """Return some of the steps."""
        return Steps(self.earlier[rows], self.later[rows], self.left[rows], self.reached[rows])


def steps_between(log: PartitionLog) -> Steps:
    """Return the steps from the end of each poll of a consumer to the start of its next poll."""
    operation, begin, end, is_read = _read_ranges(log) if log.context.derives_positions else _recorded_ranges(log)
    process = log.rows.operations.process[operation]
    order = np.argsort(process, kind="stable")
    follows = (process[order[1:]] == process[order[:-1]]) & is_read[order[1:]] & is_read[order[:-1]]
    earlier, later = order[:-1][follows], order[1:][follows]
    steps = Steps(operation[earlier], operation[later], end[earlier], begin[later])
    return steps.take(~_moved_between(log, steps.earlier, steps.later))


def _recorded_ranges(log: PartitionLog) -> tuple[Indexes, Int64s, Int64s, Flags]:
    """Return the polls by op_id, with start, end, and whether their rows of `positions` are contiguous reads.

    Rows of a table have no order: if a poll has a seek or reset, or its rows are not contiguous, its path is unknown.
    """
    positions = log.rows.positions
    rows = np.flatnonzero(log.rows.operations.polls[positions.operation])
    rows = rows[np.lexsort((positions.after[rows], positions.before[rows], positions.operation[rows]))]
    operation, before, after = positions.operation[rows], positions.before[rows], positions.after[rows]
    begins = np.flatnonzero(np.diff(operation, prepend=-1))
    is_contiguous = positions.is_read[rows] & (after != NO_OFFSET)
    is_contiguous[1:] &= (np.diff(operation) != 0) | (before[1:] == after[:-1])
    is_forward = np.logical_and.reduceat(is_contiguous, begins) if len(begins) else is_contiguous
    ends = np.append(begins[1:], len(rows))[: len(begins)] - 1
    return operation[begins].astype(np.intp), before[begins], after[ends], is_forward


def _read_ranges(log: PartitionLog) -> tuple[Indexes, Int64s, Int64s, Flags]:
    """Return the result of `_recorded_ranges` from records alone: a poll spans its first to its last record."""
    reads = log.rows.reads
    rows = returned_rows(log)
    begins = rows[np.flatnonzero(np.diff(reads.operation[rows], prepend=-1))]
    ends = rows[np.flatnonzero(np.diff(reads.operation[rows], append=len(log.rows.operations)))]
    operation = reads.operation[begins].astype(np.intp)
    return operation, reads.offset[begins], reads.offset[ends] + 1, np.ones(len(begins), np.bool_)


def returned_rows(log: PartitionLog) -> Indexes:
    """Return the rows of records that polls returned at a known offset, in the order in which they returned them."""
    reads = log.rows.reads
    rows = np.flatnonzero(log.rows.operations.polls[reads.operation] & (reads.offset != NO_OFFSET))
    return rows[np.lexsort((reads.seq[rows], reads.operation[rows]))]


def steps_inside(log: PartitionLog) -> Steps:
    """Return the steps from each record that a poll returned to the next one of the same poll."""
    reads = log.rows.reads
    rows = returned_rows(log)
    later = np.flatnonzero(reads.operation[rows[1:]] == reads.operation[rows[:-1]]) + 1
    operation = reads.operation[rows[later]].astype(np.intp)
    steps = Steps(operation, operation, reads.offset[rows[later - 1]] + 1, reads.offset[rows[later]])
    positions = log.rows.positions
    moved = np.zeros(len(log.rows.operations), np.bool_)
    moved[positions.operation[~positions.is_read]] = True
    return steps.take(~moved[operation] & ~_moved_between(log, operation, operation))


def _moved_between(log: PartitionLog, earlier: Indexes, later: Indexes) -> Flags:
    """Whether a process had an event after which it may read from elsewhere, during or between two of its polls."""
    operations = log.rows.operations
    begin_ns, complete_ns = operations.invoke_ns[earlier], operations.complete_ns[later]
    end_ns = np.where(complete_ns == NEVER_NS, operations.invoke_ns[later], complete_ns)
    process = operations.process[later]
    moved = np.zeros(len(later), np.bool_)
    for number in np.unique(process).tolist():
        moves = log.context.moves_ns.get(number)
        if moves is not None:
            own = np.flatnonzero(process == number)
            before = np.searchsorted(moves, begin_ns[own], side="left")
            moved[own] = np.searchsorted(moves, end_ns[own], side="right") > before
    return moved
