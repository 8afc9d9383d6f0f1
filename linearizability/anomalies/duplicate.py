"""`duplicate`: one record stands in the log twice (KIP-98's idempotence is there to prevent it).

Choice: idempotence keeps its promise only while the log does. An offset counts towards a violation if what was read
there is sure to have stayed (the promise of that read was never broken, or it was read again after healing, with
nothing of a later epoch at or below it); a record that an unclean election removed after it was read, and that its
producer wrote again, is permitted. So is one that a restarted leader had forgotten (`idempotence`): a batch that was in
flight when a broker ended and that its client sent again under another producer epoch, since a producer snapshot holds
the last batch of each producer alone.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.idempotence import retries_forgotten
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "duplicate"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Per record."""
    if log.ambiguous:
        return
    records, reads = log.records, log.rows.reads
    known = reads.offset != NO_OFFSET
    twice = _offsets_read(log, known) > 1
    if not twice.any():
        return
    idempotent = np.zeros(len(records), np.bool_)
    sent = records.send >= 0
    idempotent[sent] = log.rows.operations.idempotent[records.send_operation[sent]]
    settled = known & log.settled_reads()
    violation = twice & idempotent & (_offsets_read(log, settled) > 1)
    violation &= ~retries_forgotten(log, violation, settled)
    for verdict, found in ((Verdict.VIOLATION, violation), (Verdict.PERMITTED, twice & ~violation)):
        yield from finding(log, NAME, verdict, found, offsets=records.offset, show=partial(_show, log))


def _offsets_read(log: PartitionLog, rows: Flags) -> Int64s:
    """At how many offsets some read rows have each value."""
    records, reads = log.records, log.rows.reads
    # Only what was read anywhere but at its lowest offset needs a closer look.
    at_lowest = reads.offset == records.offset[log.read_ids]
    lowest = np.zeros(len(records), np.bool_)
    lowest[log.read_ids[rows & at_lowest]] = True
    other = np.flatnonzero(rows & ~at_lowest & records.valued[log.read_ids])
    distinct = np.unique(np.stack([log.read_ids[other], reads.offset[other]]), axis=1)[0].astype(np.intp)
    return lowest.astype(np.int64) + np.bincount(distinct, minlength=len(records)).astype(np.int64)


def _show(log: PartitionLog, record: int) -> Shown:
    reads = log.rows.reads
    rows = np.flatnonzero((log.read_ids == record) & (reads.offset != NO_OFFSET))
    first, second = (int(offset) for offset in np.unique(reads.offset[rows])[:2])
    readers = [int(reads.operation[rows[reads.offset[rows] == offset]].min()) for offset in (first, second)]
    text = (
        f"operation {op(log, readers[0])} read {name_of(log, record)} ({place(log, first)}),"
        f" and operation {op(log, readers[1])} read it again at offset {second}"
    )
    return Shown(readers, value_of(log, record), text)


DUPLICATE = Definition(
    name=NAME,
    text="One value was read at two offsets of a partition.",
    levels="A violation if its producer was idempotent and it is sure to stand at two offsets at one time, unless it"
    " was in flight at a restart and idempotence does not cover its retry; else permitted.",
    counted="records",
    evidence="the lowest reads of it at its two lowest offsets",
    find=find,
)
