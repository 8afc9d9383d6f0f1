"""Definition of an anomaly: its name, its text, and the function that finds it in one log."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from linearizability.anomalies.columns import NO_OFFSET, Flags, Indexes, Int64s
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.merging import lowest_evidence
from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Verdict


@dataclass(frozen=True, slots=True)
class Definition:
    """One anomaly."""

    name: str
    text: str
    """The behaviour that a history with the anomaly shows."""
    levels: str
    """The conditions under which it is a violation, permitted or unknown."""
    counted: str
    """The items that are counted."""
    evidence: str
    """The operations that are listed in `op_ids` of its evidence."""
    find: Callable[[PartitionLog], Iterable[Anomaly]]


@dataclass(frozen=True, slots=True)
class Shown:
    """One piece of evidence, with operations as indexes instead of ids."""

    operations: Sequence[int]
    """Indexes into the log's operations, in the order in which they are shown."""
    value: int | None
    text: str


def finding(
    log: PartitionLog,
    name: str,
    verdict: Verdict,
    found: Flags | Indexes,
    *,
    offsets: Int64s,
    show: Callable[[int], Shown],
) -> Iterable[Anomaly]:
    """Yield the finding of one verdict, if any item is `found`.

    The evidence is the items with the lowest `offsets`; `show` returns the evidence for one item.
    """
    indexes: Indexes = np.flatnonzero(found) if found.dtype == np.bool_ else found.astype(np.intp)
    if not len(indexes):
        return
    lowest = _lowest(indexes, offsets)
    evidence = lowest_evidence(_evidence(log, int(offsets[index]), show(index)) for index in lowest)
    yield Anomaly(name, verdict, len(indexes), evidence)


def _lowest(indexes: Indexes, offsets: Int64s) -> list[int]:
    """Return the items that may be among the lowest EVIDENCE_MAX, including all with the offset of the last one."""
    keys = offsets[indexes].astype(np.uint64)  # NO_OFFSET, the lowest int64, comes after every offset.
    if len(indexes) > EVIDENCE_MAX:
        bound = np.partition(keys, EVIDENCE_MAX - 1)[EVIDENCE_MAX - 1]
        indexes = indexes[keys <= bound]
    return [int(index) for index in indexes]


def _evidence(log: PartitionLog, offset: int, shown: Shown) -> Evidence:
    op_ids = tuple(int(log.rows.operations.op_id[operation]) for operation in shown.operations)
    place = None if offset == NO_OFFSET else offset
    return Evidence(op_ids, log.rows.topic, log.rows.partition, place, shown.value, shown.text)


def place(log: PartitionLog, offset: int) -> str:
    """Return the topic partition and offset as a text; without an offset, only the partition."""
    where = f"{log.rows.topic}-{log.rows.partition}"
    return where if offset == NO_OFFSET else f"{where} at offset {offset}"


def name_of(log: PartitionLog, record: int) -> str:
    """Return the name of a record for a text."""
    records = log.records
    return f"value {int(records.value[record])}" if records.valued[record] else "a tombstone"


def value_of(log: PartitionLog, record: int) -> int | None:
    """Return a record's value for its evidence."""
    return int(log.records.value[record]) if log.records.valued[record] else None


def op(log: PartitionLog, operation: int) -> int:
    """Return the op_id of an operation, given its index."""
    return int(log.rows.operations.op_id[operation])
