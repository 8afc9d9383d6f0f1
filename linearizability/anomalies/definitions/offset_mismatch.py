"""`offset-mismatch`: a record was read at an offset other than the acknowledged one.

Choice. After a fault, an acknowledgement with less than acks=all promises nothing. For example, the first attempt of a
produce is replicated at one offset. The leader appends the retry at another offset and acknowledges it, but is deposed
before the retry is replicated. Then only the retry is truncated. Without any fault nothing is truncated, so the
acknowledged offset must be correct.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import before_end, judge_pairs, pairs_at
from linearizability.judgement import Anomaly, Verdict

NAME = "offset-mismatch"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records. `loss.judge_pairs` selects the covering reads that are evidence."""
    if log.ambiguous:
        return
    records, reads = log.records, log.rows.reads
    read_as_acknowledged = np.zeros(len(records), np.bool_)
    read_as_acknowledged[log.read_ids[reads.offset == records.acknowledged_offset[log.read_ids]]] = True
    moved = records.acknowledged & records.read & (records.read_offset != NO_OFFSET) & ~read_as_acknowledged
    suspects = np.flatnonzero(moved & (records.acknowledged_offset != NO_OFFSET))
    suspects = suspects[np.argsort(records.acknowledged_offset[suspects], kind="stable")]
    ends_ns = records.acknowledged_end_ns if log.context.settings.faults else records.promise_end_ns
    found, violation = np.zeros(len(records), np.bool_), np.zeros(len(records), np.bool_)
    for pairs in pairs_at(log, suspects, records.acknowledged_offset[suspects], returned_elsewhere=True):
        shown, _ = judge_pairs(log, pairs)
        found[pairs.record[shown]] = True
        complete_ns = log.rows.operations.complete_ns[pairs.reader]
        violation[pairs.record[shown & before_end(complete_ns, ends_ns[pairs.record])]] = True
    for verdict, mask in ((Verdict.VIOLATION, violation), (Verdict.PERMITTED, found & ~violation)):
        yield from finding(log, NAME, verdict, mask, offsets=records.offset, show=partial(_show, log))


def _show(log: PartitionLog, record: int) -> Shown:
    records = log.records
    sender = int(records.send_operation[record])
    at_lowest = (log.read_ids == record) & (log.rows.reads.offset == records.offset[record])
    reader = int(log.rows.reads.operation[at_lowest].min())
    text = (
        f"{name_of(log, record)} was acknowledged to operation {op(log, sender)} at offset"
        f" {int(records.acknowledged_offset[record])}, but operation {op(log, reader)} read it from"
        f" {place(log, int(records.offset[record]))}, and no read past the first offset found it there"
    )
    return Shown((sender, reader), value_of(log, record), text)


OFFSET_MISMATCH = Definition(
    name=NAME,
    text="A record was read, but never at the offset at which it was acknowledged, although a read covers this offset.",
    levels="A violation if the promise of the acknowledgement was in force when the covering read completed. In a run"
    " without faults, also a violation with less than acks=all. Else permitted.",
    counted="records",
    evidence="the record's produce, and the lowest read at the offset where it was read",
    find=find,
)
