"""`corrupt-record`: a read returned a record whose bytes are not those that were sent."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from linearizability.anomalies.definition import Definition, Shown, finding, name_of, op, place, value_of
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly, Verdict

NAME = "corrupt-record"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the finding, if any; it counts records, with the lowest offset at which each was read corrupt."""
    reads = log.rows.reads
    first = reads.first_rows(np.flatnonzero(reads.corrupt), log.read_ids)
    yield from finding(log, NAME, Verdict.VIOLATION, first, offsets=reads.offset, show=partial(_show, log))


def _show(log: PartitionLog, row: int) -> Shown:
    record, reads = int(log.read_ids[row]), log.rows.reads
    reader, where = int(reads.operation[row]), place(log, int(reads.offset[row]))
    text = f"operation {op(log, reader)} read {name_of(log, record)} ({where}), whose content is not what was sent"
    return Shown((reader,), value_of(log, record), text)


CORRUPT_RECORD = Definition(
    name=NAME,
    text="A read returned a record whose key, headers, payload or (under CreateTime) timestamp differs from what was"
    " sent.",
    levels="Always a violation.",
    counted="records",
    evidence="the lowest such read at the lowest offset",
    find=find,
)
