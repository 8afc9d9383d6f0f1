"""`realtime-order`: a record stands in the log below another that was acknowledged before the record was sent."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import before_end
from linearizability.anomalies.promise import NOT_PROMISED
from linearizability.judgement import Anomaly, Verdict

NAME = "realtime-order"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records. Of each pair of records, the later one is counted.

    A pair is a violation if the first record was still promised when the later one was known to be in the log.
    """
    if log.ambiguous:
        return
    records = log.records
    later = records.committed & (records.offset != NO_OFFSET) & (records.send >= 0)
    earlier = later & records.acknowledged
    out_of_order = _below(log, earlier, later)
    violation = np.zeros(len(records), np.bool_)
    if out_of_order.any():
        end_ns = records.promise_end_ns
        promised = out_of_order & (end_ns != NOT_PROMISED)
        # Few rounds, because few faults end promises. A pair is found in the round for the promise of its first record.
        for end in np.unique(end_ns[earlier & (end_ns != NOT_PROMISED)]):
            standing = promised & before_end(records.known_from_ns, np.broadcast_to(end, end_ns.shape))
            violation |= _below(log, earlier & (end_ns >= end), standing)
    for verdict, found in ((Verdict.VIOLATION, violation), (Verdict.PERMITTED, out_of_order & ~violation)):
        yield from finding(log, NAME, verdict, found, offsets=records.offset, show=partial(_show, log, verdict))


def _below(log: PartitionLog, earlier: Flags, later: Flags) -> Flags:
    """Whether each record is in `later`, was sent after a record in `earlier` was acknowledged, and stands below it."""
    records = log.records
    first, second = np.flatnonzero(earlier), np.flatnonzero(later)
    first = first[np.argsort(records.acknowledged_ns[first], kind="stable")]
    highest = np.append(NO_OFFSET, np.maximum.accumulate(records.offset[first]))
    acknowledged = np.searchsorted(records.acknowledged_ns[first], records.invoke_ns[second], side="left")
    below = np.zeros(len(records), np.bool_)
    below[second] = highest[acknowledged] > records.offset[second]
    return below


def _show(log: PartitionLog, verdict: Verdict, record: int) -> Shown:
    records = log.records
    above = (
        records.committed
        & records.acknowledged
        & (records.acknowledged_ns < records.invoke_ns[record])
        & (records.offset > records.offset[record])
    )
    if verdict is Verdict.VIOLATION:
        known_from_ns = np.broadcast_to(records.known_from_ns[record], above.shape)
        above &= (records.promise_end_ns != NOT_PROMISED) & before_end(known_from_ns, records.promise_end_ns)
    candidates = np.flatnonzero(above)
    keys = np.lexsort((records.offset[candidates], records.send_operation[candidates]))
    first = int(candidates[keys[0]])
    earlier, sender = int(records.send_operation[first]), int(records.send_operation[record])
    text = (
        f"{name_of(log, first)} was acknowledged to operation {op(log, earlier)}"
        f" ({place(log, int(records.offset[first]))})"
        f" before operation {op(log, sender)} sent {name_of(log, record)}, which stands below it, at offset"
        f" {int(records.offset[record])}"
    )
    return Shown((earlier, sender), value_of(log, record), text)


REALTIME_ORDER = Definition(
    name=NAME,
    text="A committed record was sent after another committed record of its partition had been acknowledged, but has"
    " the lower offset.",
    levels="A violation if both records were promised, and the promise of the first one was still in force when the"
    " second one was known to be in the log; else permitted.",
    counted="records: of a pair, the one that was sent later",
    evidence="the lowest produce of a record that was acknowledged before and has a higher offset, and the produce of"
    " the counted record",
    find=find,
)
