"""`precommitted-read`: a read_committed read returned a record before its transaction began to commit (KIP-98).

A commit counts from its invocation, whatever its outcome, unless it certainly failed. A read that returned after this
invocation is never a precommitted read. If no commit of the transaction is known, and the run is not complete, the row
of the commit may be missing, so the verdict is unknown.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.columns import READ_COMMITTED
from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "precommitted-read"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records, with the lowest offset at which each was read too early."""
    if log.ambiguous:
        return
    records, reads, operations, ids = log.records, log.rows.reads, log.rows.operations, log.read_ids
    inside = (records.transaction >= 0) & ~records.aborted
    begun_ns = np.full(len(records), NEVER_NS, np.int64)
    begun_ns[inside] = log.context.transactions.commit_begun_ns[records.transaction[inside]]
    rows = np.flatnonzero(
        inside[ids]
        & (operations.isolation[reads.operation] == READ_COMMITTED)
        & (operations.complete_ns[reads.operation] < begun_ns[ids])
    )
    first = reads.first_rows(rows, ids)
    unknown = (begun_ns[ids[first]] == NEVER_NS) & (not log.context.complete)
    for verdict, chosen in ((Verdict.VIOLATION, first[~unknown]), (Verdict.UNKNOWN, first[unknown])):
        yield from finding(log, NAME, verdict, chosen, offsets=reads.offset, show=partial(_show, log))


def _show(log: PartitionLog, row: int) -> Shown:
    record, reader = int(log.read_ids[row]), int(log.rows.reads.operation[row])
    sender = int(log.records.send_operation[record])
    text = (
        f"operation {op(log, reader)} read {name_of(log, record)} ({place(log, int(log.rows.reads.offset[row]))}), sent"
        f" by operation {op(log, sender)}, before its transaction had begun to commit"
    )
    return Shown((sender, reader), value_of(log, record), text)


PRECOMMITTED_READ = Definition(
    name=NAME,
    text="A read_committed read returned a record of a transaction that was not aborted, and whose commit had not begun"
    " when the read returned.",
    levels="A violation; unknown if the run is not complete and no commit of the transaction is known.",
    counted="records",
    evidence="the produce of the record, and the lowest such read at the lowest offset",
    find=find,
)
