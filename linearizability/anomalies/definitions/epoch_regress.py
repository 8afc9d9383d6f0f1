"""`epoch-regress`: the leader epochs of batches decrease along the log (KIP-101).

Choice: two reads show the same log only if no record that the first one returned was validly removed before the second
one. If the promise for a record that was read ended between them (after an unclean election or a loss of content), the
decrease is permitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_EPOCH, NO_OFFSET, Flags, Indexes, Int32s, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, op, place
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.judgement import Anomaly, Verdict

NAME = "epoch-regress"


@dataclass(frozen=True, slots=True)
class _Sightings:
    """Read rows with an offset and an epoch, by offset."""

    offset: Int64s
    epoch: Int32s
    operation: Indexes
    end_ns: Int64s
    """When the promise for the record ended. If two sightings have the same end, no read record may be validly removed
    between them."""


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts offsets. Of each pair of offsets, the higher one is counted."""
    if log.ambiguous:
        return
    seen = _sightings(log)
    fallen = _fallen(seen, np.ones(len(seen.offset), np.bool_))
    violation = np.zeros(len(seen.offset), np.bool_)
    for end in np.unique(seen.end_ns) if fallen.any() else ():
        if end != NOT_PROMISED:
            violation |= _fallen(seen, seen.end_ns == end)
    offsets, group = np.unique(seen.offset, return_inverse=True)
    broken, any_fallen = np.zeros(len(offsets), np.bool_), np.zeros(len(offsets), np.bool_)
    broken[group[violation]] = True
    any_fallen[group[fallen]] = True
    for verdict, found in ((Verdict.VIOLATION, broken), (Verdict.PERMITTED, any_fallen & ~broken)):
        show = partial(_show, log, seen, violation if verdict is Verdict.VIOLATION else fallen, offsets)
        yield from finding(log, NAME, verdict, found, offsets=offsets, show=show)


def _sightings(log: PartitionLog) -> _Sightings:
    reads, operations = log.rows.reads, log.rows.operations
    rows = np.flatnonzero((reads.offset != NO_OFFSET) & (reads.leader_epoch != NO_EPOCH))
    rows = rows[np.lexsort((reads.leader_epoch[rows], reads.operation[rows], reads.offset[rows]))]
    reader = reads.operation[rows].astype(np.intp)
    return _Sightings(
        reads.offset[rows],
        reads.leader_epoch[rows],
        reader,
        log.promise.read.end_ns(operations.complete_ns[reader]),
    )


def _fallen(seen: _Sightings, among: Flags) -> Flags:
    """Whether each sighting in `among` has another in `among` that is of a newer epoch at a lower offset."""
    fallen = np.zeros(len(among), np.bool_)
    rows = np.flatnonzero(among)
    if len(rows):
        offset, epoch = seen.offset[rows], seen.epoch[rows]
        newest = np.append(np.int32(NO_EPOCH), np.maximum.accumulate(epoch))
        fallen[rows] = newest[np.searchsorted(offset, offset, side="left")] > epoch
    return fallen


def _show(log: PartitionLog, seen: _Sightings, fallen: Flags, offsets: Int64s, index: int) -> Shown:
    at = int(np.flatnonzero(fallen & (seen.offset == offsets[index]))[0])
    below = (seen.offset < seen.offset[at]) & (seen.epoch > seen.epoch[at])
    same_span = below & (seen.end_ns == seen.end_ns[at])
    candidates = np.flatnonzero(same_span if same_span.any() else below)
    lower = int(candidates[np.lexsort((seen.offset[candidates], seen.operation[candidates]))[0]])
    one, two = int(seen.operation[lower]), int(seen.operation[at])
    text = (
        f"operation {op(log, one)} read {place(log, int(seen.offset[lower]))} in leader epoch {int(seen.epoch[lower])},"
        f" and operation {op(log, two)} the higher offset {int(seen.offset[at])} in the older epoch"
        f" {int(seen.epoch[at])}"
    )
    return Shown((one, two), None, text)


EPOCH_REGRESS = Definition(
    name=NAME,
    text="The leader epochs of a partition's read records decrease as offsets increase.",
    levels="A violation if the records of the earlier read were still promised when the later read completed; else"
    " permitted.",
    counted="offsets: of a pair, the higher one, which has the older epoch",
    evidence="the lowest read of a lower offset in a newer epoch, and the lowest read of the offset itself",
    find=find,
)
