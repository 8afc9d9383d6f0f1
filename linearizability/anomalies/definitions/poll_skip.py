"""`poll-skip`: a consumer continues after a record without returning it.

The record must be present: some read returned it, it is committed, and there is no valid reason for its absence from
the reads of this consumer. It may be skipped in two ways. *Inside a poll*, the poll covers the record without returning
it, which is also a lost write. *Between two polls*, the record lies between the end of one and the start of the next,
so that neither covers it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from linearizability.anomalies.absence import log_starts
from linearizability.anomalies.columns import NO_OFFSET, Flags, Indexes, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import Pairs, judge_pairs, unreturned
from linearizability.anomalies.polls import returned_rows, steps_between
from linearizability.judgement import Anomaly, Verdict

NAME = "poll-skip"


@dataclass(frozen=True, slots=True)
class _Jumps:
    """Jumps, as parallel arrays.

    `record` is the lowest skipped record with a promise; if none has one, the lowest skipped record.
    """

    record: Indexes
    reader: Indexes
    left: Int64s
    promised: Flags

    def take(self, rows: Indexes | Flags) -> "_Jumps":
        """Return some of the jumps."""
        return _Jumps(self.record[rows], self.reader[rows], self.left[rows], self.promised[rows])


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts jumps."""
    if log.ambiguous:
        return
    records = log.records
    standing = records.committed & records.read & ~records.aborted & (records.offset != NO_OFFSET)
    parts = [_inside(log, standing)]
    if not log.context.derives_positions:  # derived coverage of a poll begins where the previous poll ended: no gap
        parts.append(_between(log, standing))
    jumps = _join(parts)
    offsets = records.offset[jumps.record]
    for verdict, found in ((Verdict.VIOLATION, jumps.promised), (Verdict.PERMITTED, ~jumps.promised)):
        yield from finding(log, NAME, verdict, found, offsets=offsets, show=partial(_show, log, jumps))


def _inside(log: PartitionLog, standing: Flags) -> _Jumps:
    """Return jumps over records that a poll covers without returning them or anything else in their place."""
    skipped = _join(_skipped_by_polls(log, pairs) for pairs in unreturned(log, standing))
    starts = log.once(log_starts).by(log.rows.operations.complete_ns[skipped.reader])
    skipped = skipped.take(starts <= skipped.left)
    reader, left = skipped.reader, skipped.left
    order = np.lexsort((_rank(log)[skipped.record], ~skipped.promised, left, reader))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(reader[order]) != 0) | (np.diff(left[order]) != 0)
    return skipped.take(order[fresh])


def _rank(log: PartitionLog) -> Int64s:
    """Return the rank of each record in the order in which they are shown: by offset, lowest read, value."""
    records = log.records
    rank = np.empty(len(records), np.int64)
    order = np.lexsort((records.value, ~records.valued, records.first_reader, records.offset))
    rank[order] = np.arange(len(records))
    return rank


def _skipped_by_polls(log: PartitionLog, pairs: Pairs) -> _Jumps:
    """Return one jump for each pair of a record and a poll that skipped it."""
    own = pairs.take(pairs.covering & log.rows.operations.polls[pairs.reader] & ~_returned_there(log, pairs))
    shown, promised = judge_pairs(log, own)
    return _Jumps(own.record, own.reader, _left(log, own.reader, own.offset), promised).take(shown)


def _join(parts: Iterable[_Jumps]) -> _Jumps:
    nothing = np.empty(0, np.intp)
    every = [_Jumps(nothing, nothing, np.empty(0, np.int64), np.empty(0, np.bool_)), *parts]
    return _Jumps(*(np.concatenate([getattr(part, name) for part in every]) for name in _Jumps.__slots__))


def _returned_there(log: PartitionLog, pairs: Pairs) -> Flags:
    """Whether the poll returned something at the offset itself."""
    rows, reads = returned_rows(log), log.rows.reads
    operation = reads.operation[rows].astype(np.intp)
    returned, wanted = _keys(operation, reads.offset[rows], pairs.reader, pairs.offset)
    there: Flags = np.isin(wanted, returned)
    return there


def _left(log: PartitionLog, reader: Indexes, offset: Int64s) -> Int64s:
    """Return a poll's position before it jumped over an offset: after the last returned record, or its begin."""
    rows, reads, coverage = returned_rows(log), log.rows.reads, log.coverage
    left = np.full(len(reader), NO_OFFSET, np.int64)
    for operation, position in (
        (reads.operation[rows].astype(np.intp), reads.offset[rows] + 1),
        (coverage.operation, coverage.before),
    ):
        known, wanted = _keys(operation, position, reader, offset)
        order = np.argsort(known)
        nearest = np.searchsorted(known[order], wanted, side="right") - 1
        has = nearest >= 0
        nearest = order[np.maximum(nearest, 0)] if len(order) else np.zeros(len(reader), np.intp)
        has[has] = operation[nearest[has]] == reader[has]
        left[has] = np.maximum(left[has], position[nearest[has]])
    return left


def _keys(operation: Indexes, offset: Int64s, other: Indexes, other_offset: Int64s) -> tuple[Int64s, Int64s]:
    """Return pairs of an operation and an offset as numbers that compare as the pairs do."""
    offsets, rank = np.unique(np.concatenate([offset, other_offset]), return_inverse=True)
    count = max(len(offsets), 1)
    keys = np.concatenate([operation, other]).astype(np.int64) * count + rank
    return keys[: len(operation)], keys[len(operation) :]


def _between(log: PartitionLog, standing: Flags) -> _Jumps:
    """Return jumps from the end of a poll to the begin of the next, over records that some read returned."""
    steps = log.once(steps_between)
    steps = steps.take(steps.reached > steps.left)
    steps = steps.take(log.once(log_starts).by(log.rows.operations.complete_ns[steps.later]) <= steps.left)
    sorted_records = np.flatnonzero(standing)
    sorted_records = sorted_records[np.argsort(_rank(log)[sorted_records])]
    offset = log.records.offset[sorted_records]
    at, end = np.searchsorted(offset, steps.left), np.searchsorted(offset, steps.reached)
    count = len(steps.later)
    jumps = _Jumps(np.full(count, -1, np.intp), steps.later, steps.left, np.zeros(count, np.bool_))
    width = 1
    # A jump is decided by its first promised record. Until one is found, judge further records, doubling their number.
    while len(open_steps := np.flatnonzero((at < end) & ~jumps.promised)):
        taken = np.minimum(end[open_steps] - at[open_steps], width)
        step = np.repeat(open_steps, taken)
        nth = np.arange(len(step)) - np.repeat(np.cumsum(taken) - taken, taken)
        _note_first(log, jumps, step, sorted_records[at[step] + nth])
        at[open_steps] += taken
        width *= 2
    return jumps.take(jumps.record >= 0)


def _note_first(log: PartitionLog, jumps: _Jumps, jump: Indexes, record: Indexes) -> None:
    """Set each jump's record to its lowest promised one or, if none was found before, to its lowest missing one.

    The pairs of `jump` and `record` are sorted by jump, then by the record's offset.
    """
    everywhere = np.full(len(jump), NEVER_NS, np.int64)
    pairs = Pairs(record, jumps.reader[jump], log.records.offset[record], everywhere, np.ones(len(jump), np.bool_))
    shown, promised = judge_pairs(log, pairs)
    for rows in (np.flatnonzero(shown & (jumps.record[jump] < 0))[::-1], np.flatnonzero(promised)[::-1]):
        jumps.record[jump[rows]] = record[rows]  # backwards: the lowest is written last
    jumps.promised[jump[promised]] = True


def _show(log: PartitionLog, jumps: _Jumps, index: int) -> Shown:
    record, reader = int(jumps.record[index]), int(jumps.reader[index])
    other = int(log.records.first_reader[record])
    process = int(log.rows.operations.process[reader])
    text = (
        f"operation {op(log, other)} read {name_of(log, record)} ({place(log, int(log.records.offset[record]))});"
        f" process {process}, which was at position {int(jumps.left[index])}, continued after it in operation"
        f" {op(log, reader)}"
    )
    return Shown((other, reader), value_of(log, record), text)


POLL_SKIP = Definition(
    name=NAME,
    text="A consumer skipped a committed record, between two polls or inside one poll, although some read returned the"
    " record and it must be present. No seek, reset or assignment event of the process explains the jump, and no"
    " response has a log start offset above the position from which the consumer jumped.",
    levels="A violation if the record was promised when it was skipped; else permitted.",
    counted="jumps",
    evidence="the lowest read of the lowest skipped record, and the poll that continued after this record",
    find=find,
)
