"""`phantom-read`: a read returned a record that no client wrote."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "phantom-read"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts records. A read of a failed send is another anomaly (`aborted-read`)."""
    records = log.records
    unsent = records.read & records.valued & (records.send < 0)
    unsent[unsent] = ~np.isin(records.value[unsent], log.explained_values)
    too_early = records.read & records.valued & (records.send >= 0) & (records.first_read_ns < records.invoke_ns)
    verdict = Verdict.VIOLATION if log.context.complete else Verdict.UNKNOWN
    yield from finding(log, NAME, verdict, unsent | too_early, offsets=records.offset, show=partial(_show, log))


def _show(log: PartitionLog, record: int) -> Shown:
    records, value = log.records, value_of(log, record)
    where = place(log, int(records.offset[record]))
    if records.send[record] < 0:
        reader = int(records.first_reader[record])
        text = f"operation {op(log, reader)} read {name_of(log, record)} ({where}), which no operation sent there"
        return Shown((reader,), value, text)
    rows = np.flatnonzero(log.read_ids == record)
    readers = log.rows.reads.operation[rows]
    reader = int(readers[log.rows.operations.complete_ns[readers] < records.invoke_ns[record]].min())
    sender = int(records.send_operation[record])
    text = (
        f"operation {op(log, reader)} read {name_of(log, record)} ({where})"
        f" before operation {op(log, sender)}, which sent it, was invoked"
    )
    return Shown((reader, sender), value, text)


PHANTOM_READ = Definition(
    name=NAME,
    text="A value was read that no operation sent to that partition, or that was sent only after the read completed.",
    levels="A violation; unknown if the run is not complete, because its last sends may be missing from the history.",
    counted="records",
    evidence="the lowest operation that read the value and, if the value was sent too late, its produce",
    find=find,
)
