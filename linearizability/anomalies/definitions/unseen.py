"""`unseen`: the run ended before its last promised records were read back, so their presence is unknown."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.absence import absent_at, log_starts
from linearizability.anomalies.columns import NO_KEY, NO_OFFSET, Flags
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import losses
from linearizability.judgement import Anomaly, Verdict

NAME = "unseen"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records."""
    if log.ambiguous:
        return
    records, lost = log.records, log.once(losses)
    promised = records.acks_all & (records.acknowledged_end_ns == NEVER_NS) & ~records.read
    # A tombstone of unknown offset cannot be distinguished from another one of its key.
    nameable = records.valued | (records.offset != NO_OFFSET)
    found = promised & nameable & ~lost.covered & ~lost.violation & ~lost.permitted
    found[found] = ~_may_be_gone(log, found)
    yield from finding(log, NAME, Verdict.UNKNOWN, found, offsets=records.offset, show=partial(_show, log))


def _may_be_gone(log: PartitionLog, found: Flags) -> Flags:
    """Whether each record in `found` may be absent at the end of the run.

    A record of unknown offset may be absent if the log start was raised, or if the topic is compacted and the record
    has a key. In a topic with retention, every record may be absent.
    """
    record = np.flatnonzero(found)
    offset = log.records.offset[record]
    unknown = offset == NO_OFFSET
    end = np.full(len(record), NEVER_NS - 1, np.int64)
    gone = absent_at(log, record, np.where(unknown, NEVER_NS, offset), end)
    starts = log.once(log_starts)
    raised = len(starts.highest) > 0 and int(starts.highest[-1]) > 0
    compacted = log.rules.compaction & (log.records.key[record] != NO_KEY)
    may_be_gone: Flags = gone | (unknown & (raised | compacted)) | log.rules.retention
    return may_be_gone


def _show(log: PartitionLog, record: int) -> Shown:
    sender = int(log.records.send_operation[record])
    where = place(log, int(log.records.offset[record]))
    text = f"{name_of(log, record)} was acknowledged to operation {op(log, sender)} ({where}), and no read covers it"
    return Shown((sender,), value_of(log, record), text)


UNSEEN = Definition(
    name=NAME,
    text="A promised record that must be present was not covered by any read, and was not shown to be lost. So the run"
    " ended before everything was read back.",
    levels="Always unknown.",
    counted="records",
    evidence="the record's produce",
    find=find,
)
