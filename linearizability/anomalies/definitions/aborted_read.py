"""`aborted-read`: a read returned a record that was aborted (KIP-98) or whose send failed."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import FAIL, READ_COMMITTED
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "aborted-read"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records, with the lowest offset at which each was wrongly read."""
    if log.ambiguous:
        return
    records, reads, operations, ids = log.records, log.rows.reads, log.rows.operations, log.read_ids
    failed = np.zeros(len(records), np.bool_)
    sent = records.send >= 0
    failed[sent] = operations.outcome[records.send_operation[sent]] == FAIL
    committed_read = operations.isolation[reads.operation] == READ_COMMITTED
    rows = np.flatnonzero(failed[ids] | (committed_read & records.aborted[ids]))
    first = reads.first_rows(rows, ids)
    yield from finding(log, NAME, Verdict.VIOLATION, first, offsets=reads.offset, show=partial(_show, log))


def _show(log: PartitionLog, row: int) -> Shown:
    records, reads = log.records, log.rows.reads
    record, reader = int(log.read_ids[row]), int(reads.operation[row])
    sender = int(records.send_operation[record])
    why = "whose transaction was aborted" if records.aborted[record] else "which failed for certain"
    text = (
        f"operation {op(log, reader)} read {name_of(log, record)} ({place(log, int(reads.offset[row]))}), sent by"
        f" operation {op(log, sender)}, {why}"
    )
    return Shown((sender, reader), value_of(log, record), text)


ABORTED_READ = Definition(
    name=NAME,
    text="A read_committed read returned a record whose transaction was aborted, or any read returned a record whose"
    " send certainly failed.",
    levels="Always a violation.",
    counted="records",
    evidence="the produce of the record, and the lowest such read at the lowest offset",
    find=find,
)
