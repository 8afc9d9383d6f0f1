"""Check of one partition of a Kafka history as a linearizable log: exact, in the time to read and sort its columns.

`search.log_order` defines what is judged. The check for anomalies is more detailed, and permits what Kafka permits
after faults; this check decides only whether a valid order exists. It does not check that reads returned every record
if the topic has retention or compaction, or if any operation of the run may have deleted a topic or records. For a
transaction that is not known to be committed it does not check whether read_committed reads returned its records.

Some logs are not judged but raise HistoryError: a log with tombstones, a log of a topic that was created again, and, if
no record has the topic's id, a log that was used after its topic may have been deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import numbers
from linearizability.anomalies.promise import topic_rules
from linearizability.anomalies.summary import settings_of
from linearizability.history.errors import HistoryError
from linearizability.history.reader import History
from linearizability.search.log_order import (
    NEVER,
    UNKNOWN_OFFSET,
    Bools,
    FetchColumns,
    Ints,
    LogConflict,
    ReadColumns,
    SendColumns,
    find_log_conflict,
)
from linearizability.search.zones import Ending

_OPERATIONS: Final = ("op_id", "f", "invoke_ns", "complete_ns", "outcome", "isolation", "process", "txn_seq", "topic")
_RECORDS: Final = ("op_id", "seq", "direction", "topic", "topic_id", "partition", "offset", "value")
_POSITIONS: Final = ("op_id", "topic", "partition", "before", "after", "cause", "high_watermark")
_ENDINGS: Final = pa.array(["ok", "fail", "info"])
"""The outcomes, in the order of `Ending`."""
_DELETES: Final = "(?i)^delete.*(record|topic)"
_DELETES_TOPIC: Final = "(?i)^delete.*topic"


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """A partition's history in the form of `log_order`, and the operation of each row."""

    sends: SendColumns
    fetches: FetchColumns
    reads: ReadColumns
    send_op_ids: Ints
    fetch_op_ids: Ints

    def find_conflict(self, *, linearizable: bool = False) -> LogConflict | None:
        """Return the result of `log_order.find_log_conflict`, with op_ids instead of rows."""
        found = find_log_conflict(self.sends, self.fetches, self.reads, linearizable=linearizable)
        if found is None:
            return None
        sends = tuple(int(self.send_op_ids[row]) for row in found.sends)
        fetches = tuple(int(self.fetch_op_ids[row]) for row in found.fetches)
        return LogConflict(sends, fetches, found.offset, found.sentence)


def partition_columns(history: History, topic: str, partition: int) -> PartitionColumns:
    """Return the columns of one partition. Raises HistoryError, with the reason, if it cannot be judged."""
    operations = _operations(history)
    sends, reads, has_id = _records(history, topic, partition, operations)
    positions = _positions(history, topic, partition, operations)
    if not has_id:
        _reject_deleted(operations, topic, np.concatenate([rows.operation for rows in (sends, reads, positions)]))
    for rows, offsets in ((sends, (sends.offset,)), (reads, (reads.offset,)), (positions, positions.bounds)):
        _reject_last_offset(operations, rows.operation, offsets)
    reads = reads.take(operations.counts[reads.operation])
    without_offset = reads.operation[reads.offset == UNKNOWN_OFFSET]
    reads = reads.take(reads.offset != UNKNOWN_OFFSET)
    positions = positions.take(operations.counts[positions.operation])
    fetches = np.flatnonzero(
        np.bincount(np.concatenate([reads.operation, positions.operation]), minlength=len(operations.op_id))
    )
    # If a fetch returned a record without an offset, the range that it passed is unknown.
    may_lack = np.isin(fetches, without_offset) | (operations.deletes or _may_remove_records(history, topic))
    return PartitionColumns(
        SendColumns(
            value=sends.value,
            offset=sends.offset,
            invoke_ns=operations.invoke_ns[sends.operation],
            complete_ns=operations.complete_ns[sends.operation],
            ending=operations.ending[sends.operation],
            may_abort=operations.may_abort[sends.operation],
        ),
        FetchColumns(
            operations.invoke_ns[fetches],
            operations.complete_ns[fetches],
            *_ranges(positions, np.searchsorted(fetches, positions.operation), len(fetches), may_lack),
            operations.committed_only[fetches],
        ),
        _reads(reads, np.searchsorted(fetches, reads.operation)),
        operations.op_id[sends.operation],
        operations.op_id[fetches],
    )


class _Rows:
    """Parallel arrays of one length."""

    __slots__ = ()

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Self:
        """Return the same columns, for some rows."""
        return type(self)(*(getattr(self, column.name)[rows] for column in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Operations:
    """All operations, by op_id ascending."""

    op_id: Ints
    invoke_ns: Ints
    complete_ns: Ints
    ending: npt.NDArray[np.int8]
    counts: npt.NDArray[np.bool_]
    """Whether the records that the operation read count: it is ok, and did not read a replica's disk."""
    may_abort: npt.NDArray[np.bool_]
    """Whether the operation is part of a transaction that is not known to be committed."""
    committed_only: npt.NDArray[np.bool_]
    """Whether the operation may leave out uncommitted records: it is not known to be read_uncommitted."""
    deletes: bool
    """Whether any operation may have deleted a topic or records."""
    deletions: tuple["_Deletion", ...]

    def index(self, op_ids: Ints) -> Ints:
        """Return the index of each operation."""
        if len(self.op_id) and int(self.op_id[-1]) - int(self.op_id[0]) == len(self.op_id) - 1:
            return op_ids - int(self.op_id[0])
        index: Ints = np.searchsorted(self.op_id, op_ids).astype(np.int64)
        return index


@dataclass(frozen=True, slots=True)
class _Deletion:
    """An operation that may have deleted a topic. If `topic` is None, it may have deleted any topic."""

    op_id: int
    topic: str | None
    invoke_ns: int


@dataclass(frozen=True, slots=True)
class _RecordRows(_Rows):
    operation: Ints
    seq: Ints
    offset: Ints
    value: Ints


@dataclass(frozen=True, slots=True)
class _PositionRows(_Rows):
    operation: Ints
    before: Ints
    after: Ints
    watermark: Ints

    @property
    def bounds(self) -> tuple[Ints, ...]:
        """All columns of offsets."""
        return self.before, self.after, self.watermark


def _operations(history: History) -> _Operations:
    parts, deletes = [], False
    deletions: list[_Deletion] = []
    for table in history.batches("operations", _OPERATIONS):
        f = table["f"]
        deleting = table.filter(pc.and_(pc.match_substring_regex(f, _DELETES), pc.not_equal(table["outcome"], "fail")))
        deletes = deletes or deleting.num_rows > 0
        topics = deleting.filter(pc.match_substring_regex(deleting["f"], _DELETES_TOPIC))
        deletions += [_Deletion(**row) for row in topics.select(["op_id", "topic", "invoke_ns"]).to_pylist()]
        ending = numbers(pc.index_in(table["outcome"], value_set=_ENDINGS), Ending.INFO).astype(np.int8)
        parts.append(
            (
                *(numbers(table[name], 0) for name in ("op_id", "invoke_ns", "process", "txn_seq")),
                numbers(table["complete_ns"], NEVER),
                ending,
                (ending == Ending.OK) & pc.not_equal(f, "read_replica").to_numpy(),
                table["txn_seq"].is_valid().to_numpy(),
                (ending == Ending.OK) & pc.equal(f, "commit_txn").to_numpy(),
                ~pc.fill_null(pc.equal(table["isolation"], "read_uncommitted"), False).to_numpy(),
            )
        )
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if np.any(columns[0][1:] < columns[0][:-1]):
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    op_id, invoke_ns, process, txn_seq, complete_ns, ending, counts, transactional, commits, committed_only = columns
    may_abort = transactional & ~_committed(process, txn_seq, transactional, commits)
    return _Operations(
        op_id, invoke_ns, complete_ns, ending, counts, may_abort, committed_only, deletes, tuple(deletions)
    )


def _committed(process: Ints, txn_seq: Ints, transactional: Bools, commits: Bools) -> Bools:
    """Whether each operation's transaction was certainly committed."""
    rows = np.flatnonzero(transactional)
    _, process_code = np.unique(process[rows], return_inverse=True)
    sequences, sequence_code = np.unique(txn_seq[rows], return_inverse=True)
    transaction = process_code * len(sequences) + sequence_code
    known = np.zeros(len(process), np.bool_)
    known[rows] = np.isin(transaction, transaction[commits[rows]])
    return known


def _records(
    history: History, topic: str, partition: int, operations: _Operations
) -> tuple[_RecordRows, _RecordRows, bool]:
    """Return the sent records, the read records, and whether the topic's id is known."""
    sends: list[_RecordRows] = []
    reads: list[_RecordRows] = []
    topic_ids: set[str] = set()
    for batch in history.batches("records", _RECORDS):
        table = _of(batch, topic, partition)
        topic_ids |= set(pc.unique(table["topic_id"]).drop_null().to_pylist())
        _reject_tombstones(table)
        rows = _RecordRows(
            operations.index(numbers(table["op_id"], 0)),
            *(numbers(table[name], null) for name, null in (("seq", 0), ("offset", UNKNOWN_OFFSET), ("value", 0))),
        )
        is_send = pc.equal(table["direction"], "send").to_numpy()
        sends.append(rows.take(is_send))
        reads.append(rows.take(~is_send))
    if len(topic_ids) > 1:
        raise HistoryError(f"topic {topic} was created more than once, and each of its ids has its own log")
    return _together(sends), _together(reads), bool(topic_ids)


def _reject_deleted(operations: _Operations, topic: str, used: Ints) -> None:
    """Raise HistoryError if a topic without an id was used after it may have been deleted.

    The later use may be of another topic of that name.
    """
    known = used[operations.ending[used] == Ending.OK]
    last_ns = int(np.max(operations.complete_ns[known], initial=np.iinfo(np.int64).min))
    for deletion in operations.deletions:
        if deletion.topic in (topic, None) and last_ns >= deletion.invoke_ns:
            what = f"operation {deletion.op_id} may have deleted topic {topic}, and no topic id distinguishes later use"
            raise HistoryError(f"{what} from earlier use")


def _reject_last_offset(operations: _Operations, used: Ints, offsets: Sequence[Ints]) -> None:
    """Raise HistoryError for the highest 64-bit number as an offset: no log could end after it."""
    for column in offsets:
        wrong = np.flatnonzero(column == NEVER)
        if len(wrong):
            op_id = operations.op_id[used[wrong[0]]]
            raise HistoryError(f"operation {op_id} has the offset {NEVER}, after which no log could continue")


def _positions(history: History, topic: str, partition: int, operations: _Operations) -> _PositionRows:
    parts = []
    for batch in history.batches("positions", _POSITIONS):
        table = _of(batch, topic, partition)
        rows = _PositionRows(
            operations.index(numbers(table["op_id"], 0)),
            *(numbers(table[name], UNKNOWN_OFFSET) for name in ("before", "after", "high_watermark")),
        )
        parts.append(rows.take(pc.equal(table["cause"], "read").to_numpy()))
    return _together(parts)


Rows = TypeVar("Rows", _RecordRows, _PositionRows)


def _together(parts: Sequence[Rows]) -> Rows:
    kind = type(parts[0])
    return kind(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(kind)))


def _of(table: pa.Table, topic: str, partition: int) -> pa.Table:
    wanted = pc.and_(pc.equal(table["partition"], partition), pc.equal(table["topic"], topic))
    return table if pc.all(wanted).as_py() else table.filter(wanted)


def _reject_tombstones(records: pa.Table) -> None:
    if records["value"].null_count:
        row = int(pc.index(pc.is_null(records["value"]), True).as_py())
        raise HistoryError(f"operation {records['op_id'][row]} has a tombstone, which has no value to identify it")


def _may_remove_records(history: History, topic: str) -> bool:
    """Whether retention or compaction may remove records."""
    rules = topic_rules(settings_of(history.run, history.table("faults")), topic)
    return rules.retention or rules.compaction


def _ranges(positions: _PositionRows, fetch: Ints, count: int, may_lack: Bools) -> tuple[Ints, Ints, Ints]:
    """Return, per fetch, the start and end of its range, and its highest watermark.

    Start and end are unknown if the fetch has several ranges, may lack records, or ends before it begins.
    """
    before, after, watermark = (np.full(count, UNKNOWN_OFFSET) for _ in range(3))
    before[fetch], after[fetch] = positions.before, positions.after
    np.maximum.at(watermark, fetch, positions.watermark)
    several = (np.bincount(fetch, minlength=count) > 1) | may_lack | (after < before)
    before[several] = after[several] = UNKNOWN_OFFSET
    return before, after, watermark


def _reads(reads: _RecordRows, fetch: Ints) -> ReadColumns:
    step = np.diff(fetch)
    if np.any((step < 0) | ((step == 0) & (np.diff(reads.seq) <= 0))):
        order = np.lexsort((reads.seq, fetch))
        return ReadColumns(fetch[order], reads.offset[order], reads.value[order])
    return ReadColumns(fetch, reads.offset, reads.value)
