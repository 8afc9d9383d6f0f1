"""`duplicate`: one record is in the log twice (idempotence, KIP-98, prevents it).

Choice: idempotence prevents duplicates only as long as the log keeps its content. A violation therefore needs two
offsets at which the record was certainly still present at the end of the run. That is certain in two cases. In the
first, the promise of a read at the offset never ended. In the second, a read after healing returned the record there,
and no record of a later epoch was read at or below the offset.

Two cases are permitted although the producer was idempotent. In the first, an unclean election removed the record after
it was read, and its producer wrote it again. In the second, its batch was in flight when a broker stopped, and the
client sent it again under another producer epoch. The restarted leader did not recognise the batch, because a producer
snapshot has only the last batch of each producer ([promises](promises.md#what-idempotence-does-not-cover)).
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.idempotence import retries_unrecognised
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "duplicate"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records."""
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
    violation &= ~retries_unrecognised(log, violation, settled)
    for verdict, found in ((Verdict.VIOLATION, violation), (Verdict.PERMITTED, twice & ~violation)):
        yield from finding(log, NAME, verdict, found, offsets=records.offset, show=partial(_show, log))


def _offsets_read(log: PartitionLog, rows: Flags) -> Int64s:
    """Return, per record, the number of offsets at which the given rows read it; for a tombstone at most one."""
    records, reads = log.records, log.rows.reads
    # Most rows read a record at its lowest offset. Only the other rows are sorted, to count their distinct offsets.
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
    levels="A violation if the producer was idempotent and the record was certainly at two offsets at the same time;"
    " else permitted. Also permitted if the record was in flight at a restart and idempotence does not cover its"
    " retry.",
    counted="records",
    evidence="the lowest read at the record's lowest offset, and the lowest read at its second lowest offset",
    find=find,
)
