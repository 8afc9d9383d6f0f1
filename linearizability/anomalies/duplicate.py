"""`duplicate`: one record stands in the log twice (KIP-98's idempotence is there to prevent it)."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Int64s
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.finding import Finding
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Verdict

NAME = "duplicate"


def find(log: PartitionLog) -> Iterable[Finding]:
    """Per record."""
    if log.ambiguous:
        return
    records = log.records
    twice = _offsets_read(log) > 1
    idempotent = np.zeros(len(records), np.bool_)
    sent = records.send >= 0
    idempotent[sent] = log.rows.operations.idempotent[records.send_operation[sent]]
    for verdict, found in ((Verdict.VIOLATION, twice & idempotent), (Verdict.PERMITTED, twice & ~idempotent)):
        yield from finding(log, NAME, verdict, found, offsets=records.offset, show=partial(_show, log))


def _offsets_read(log: PartitionLog) -> Int64s:
    """At how many offsets each value was read."""
    records, reads = log.records, log.rows.reads
    # Only what was read anywhere but at its lowest offset needs a closer look.
    other = np.flatnonzero((reads.offset != NO_OFFSET) & (reads.offset != records.offset[log.read_ids]))
    other = other[records.valued[log.read_ids[other]]]
    distinct = np.unique(np.stack([log.read_ids[other], reads.offset[other]]), axis=1)[0].astype(np.intp)
    return 1 + np.bincount(distinct, minlength=len(records)).astype(np.int64)


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
    levels="A violation if its producer was idempotent, else permitted.",
    counted="records",
    evidence="the lowest reads of it at its two lowest offsets",
    find=find,
)
