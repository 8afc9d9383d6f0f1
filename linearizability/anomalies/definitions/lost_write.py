"""`lost-write`: a record that Kafka promised to keep is gone; `loss.py` collects the evidence."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.loss import losses, witnesses
from linearizability.judgement import Anomaly, Verdict

NAME = "lost-write"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records."""
    if log.ambiguous:
        return
    lost = log.once(losses)
    for verdict, found in ((Verdict.VIOLATION, lost.violation), (Verdict.PERMITTED, lost.permitted)):
        yield from finding(log, NAME, verdict, found, offsets=log.records.offset, show=partial(_show, log, verdict))


def _show(log: PartitionLog, verdict: Verdict, record: int) -> Shown:
    records = log.records
    known = int(records.known_operation[record])
    offset = int(records.offset[record])
    readers, promised = witnesses(log, record, offset)
    readers = readers[promised] if verdict is Verdict.VIOLATION else readers
    how = "was acknowledged to" if records.acknowledged[record] else "was read by"
    what = f"{name_of(log, record)} {how} operation {op(log, known)} ({place(log, offset)})"
    if not len(readers):
        return Shown((known,), value_of(log, record), f"{what}, but later the leader returned an end at or below it")
    reader = int(np.min(readers))
    text = f"{what}, but operation {op(log, reader)}, which read past that offset, did not return it"
    return Shown((known, reader), value_of(log, record), text)


LOST_WRITE = Definition(
    name=NAME,
    text="A committed record that must be present is gone. Either a read that covers its offset does not return it, or"
    " a read returns another record at its offset. Or, in a topic without retention, the leader of the newest epoch"
    " returns a read_uncommitted end offset at or below the record after healing. Such an end offset does not count if"
    " the record was acknowledged and a read after healing returned it at its offset.",
    levels="A violation if the record was promised when the loss was shown, else permitted.",
    counted="records",
    evidence="the record's produce (or the lowest operation that read it), and the lowest read that misses it",
    find=find,
)
