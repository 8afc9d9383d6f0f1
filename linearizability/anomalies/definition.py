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
    """One anomaly that concerns a single log: its texts, and the function that finds it."""

    name: str
    text: str
    """The behaviour that a history with the anomaly shows."""
    levels: str
    """The conditions under which it is a violation, permitted or unknown."""
    counted: str
    """The kind of item that `Anomaly.count` counts, such as "records" or "responses"."""
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
    """Yield one anomaly that counts all the items in `found`; nothing if there are none.

    The anomaly has evidence for only the EVIDENCE_MAX items with the lowest offsets.

    :param found: the items, as a mask or as indexes.
    :param offsets: the offset of each item, by its index.
    :param show: returns the evidence for one item, given its index.
    """
    indexes: Indexes = np.flatnonzero(found) if found.dtype == np.bool_ else found.astype(np.intp)
    if not len(indexes):
        return
    lowest = _lowest(indexes, offsets)
    evidence = lowest_evidence(_evidence(log, int(offsets[index]), show(index)) for index in lowest)
    yield Anomaly(name, verdict, len(indexes), evidence)


def _lowest(indexes: Indexes, offsets: Int64s) -> list[int]:
    """Return the EVIDENCE_MAX items with the lowest offsets, and all items with the same offset as the last of these.

    The caller sorts items with the same offset by their evidence.
    """
    keys = offsets[indexes].astype(np.uint64)  # As uint64, NO_OFFSET (the lowest int64) is above every offset.
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
    """Return a description of a record for the text of its evidence: its value, or "a tombstone"."""
    records = log.records
    return f"value {int(records.value[record])}" if records.valued[record] else "a tombstone"


def value_of(log: PartitionLog, record: int) -> int | None:
    """Return a record's value for its evidence; None for a tombstone."""
    return int(log.records.value[record]) if log.records.valued[record] else None


def op(log: PartitionLog, operation: int) -> int:
    """Return the op_id of an operation, given its index."""
    return int(log.rows.operations.op_id[operation])
