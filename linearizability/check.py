"""The local engine: judges a history on this machine, one topic partition after the other.

`records` and `positions` are read once, a batch at a time, into compact arrays; their rows are then taken topic
partition by topic partition, each a shard for `anomalies.catalogue`. Beside the arrays (some 50 bytes a record) memory
holds one shard's working set at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.anomalies.arrow import (
    OPERATION_FIELDS,
    PLACE_FIELDS,
    POSITION_FIELDS,
    RECORD_FIELDS,
    STATE_FIELDS,
    KeyCodes,
    numbers,
    operation_columns,
    position_columns,
    record_columns,
    state_columns,
)
from linearizability.anomalies.catalogue import first_committed_reads, judge_shard, merge_first_reads
from linearizability.anomalies.columns import (
    LogColumns,
    OperationColumns,
    PositionColumns,
    RecordColumns,
    StateColumns,
    concatenate,
)
from linearizability.anomalies.context import Context
from linearizability.anomalies.finding import Finding
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.summary import (
    SUMMARY_FIELDS,
    Summary,
    context_of,
    judgement_of,
    merge_summaries,
    summarise,
)
from linearizability.history.reader import History, open_history
from linearizability.history.schema import SCHEMAS
from linearizability.judgement import Judgement

Place = tuple[str, str | None, int]

_NONE = np.empty(0, np.int32)
_NO_ROWS = np.empty(0, np.intp)


def judge(run_dir: Path) -> Judgement:
    """Judge the history of a run directory. Raises HistoryError or NotARunError, one line each."""
    history = open_history(run_dir)
    table, summary = _operations(history)
    faults = history.table("faults")
    context = context_of(history.run, faults, summary)
    op_ids = numbers(table["op_id"], 0)
    records = _Records(history, op_ids, lambda topic: context.rules(topic).compaction)
    positions = _Positions(history, op_ids)
    states = _rows_by_place(history.table("states", [*PLACE_FIELDS, *STATE_FIELDS]))
    summary = merge_summaries([summary, records.summary, positions.summary, _small_tables(history)])
    context = context_of(history.run, faults, summary)
    operations = operation_columns(table, context.transactions, context.clients)
    del table
    rows = _Rows(operations, records, positions, states)
    findings = _findings(rows, _decided(rows, context))
    return judgement_of(summary, findings)


def _operations(history: History) -> tuple[pa.Table, Summary]:
    """The operations, sorted by op_id, and the summary of all there is to say without a record."""
    columns = sorted({*OPERATION_FIELDS, *SUMMARY_FIELDS["operations"]})
    kept: list[pa.Table] = []
    summaries: list[Summary] = []
    for table in history.batches("operations", columns):
        summaries.append(summarise("operations", table))
        own = table.select(list(OPERATION_FIELDS))
        for name in ("outcome", "isolation"):
            own = own.set_column(own.column_names.index(name), name, pc.dictionary_encode(own[name]))
        kept.append(own)
    operations = pa.concat_tables(kept).unify_dictionaries()
    op_ids = numbers(operations["op_id"], 0)
    if np.any(np.diff(op_ids) < 0):
        operations = operations.take(np.argsort(op_ids, kind="stable"))
    return operations, merge_summaries(summaries)


def _small_tables(history: History) -> Summary:
    names = ("states", "offsets", "inputs", "assignments")
    return merge_summaries(
        summarise(name, table) for name in names for table in history.batches(name, SUMMARY_FIELDS[name])
    )


def _count(history: History, name: str) -> int:
    finished = sum(int(pq.read_metadata(path).num_rows) for path in history.files(name))
    return finished + int(history.unfinished(name).num_rows)


class _Placed:
    """Rows of one table as arrays, and which place (topic, topic id, partition) each belongs to."""

    def __init__(self) -> None:
        self.places: dict[Place, int] = {}

    def _codes(self, table: pa.Table) -> npt.NDArray[np.int32]:
        encoded = [pc.dictionary_encode(table[name]).combine_chunks() for name in PLACE_FIELDS]
        sizes = [len(column.dictionary) + 1 for column in encoded]
        packed = np.zeros(table.num_rows, np.int64)
        for column, size in zip(encoded, sizes, strict=True):
            packed = packed * size + column.indices.fill_null(size - 1).to_numpy()
        distinct, inverse = np.unique(packed, return_inverse=True)
        values = [[*column.dictionary.to_pylist(), None] for column in encoded]
        codes = np.empty(len(distinct), np.int32)
        for index, code in enumerate(distinct.tolist()):
            rest, partition = divmod(code, sizes[2])
            topic, topic_id = divmod(rest, sizes[1])
            place = (values[0][topic], values[1][topic_id], values[2][partition])
            codes[index] = self.places.setdefault(place, len(self.places))
        return codes[inverse]

    def _topic_ids(self) -> frozenset[tuple[str, str]]:
        return frozenset((topic, topic_id) for topic, topic_id, _ in self.places if topic_id is not None)


class _Records(_Placed):
    """All rows of `records`, by direction; operations by index."""

    def __init__(self, history: History, op_ids: npt.NDArray[np.int64], compacted: Callable[[str], bool]) -> None:
        super().__init__()
        count = _count(history, "records")
        # Room for all rows in both: pages that are never written to take no memory.
        self.sends, self.reads = _Filled(_record_room(count), count), _Filled(_record_room(count), count)
        keys = KeyCodes()
        for table in history.batches("records", [*RECORD_FIELDS, *PLACE_FIELDS, "direction"]):
            topics = pc.unique(table["topic"]).to_pylist()
            keyed = pa.array([topic for topic in topics if compacted(topic)], pa.string())
            wanted = pc.or_(pc.is_null(table["value"]), pc.is_in(table["topic"], value_set=keyed)).to_numpy()
            operation = np.searchsorted(op_ids, numbers(table["op_id"], 0)).astype(np.int32)
            rows, codes = record_columns(table, operation, keys.of(table["key"], wanted)), self._codes(table)
            is_read = pc.equal(table["direction"], "read").to_numpy()
            self.sends.append(rows.take(~is_read), codes[~is_read])
            self.reads.append(rows.take(is_read), codes[is_read])
        self.summary = Summary(records=count, reads=self.reads.count, topic_ids=self._topic_ids())


class _Positions(_Placed):
    """All rows of `positions`; operations by index."""

    def __init__(self, history: History, op_ids: npt.NDArray[np.int64]) -> None:
        super().__init__()
        count = _count(history, "positions")
        self.rows = _Filled(_room(position_columns(SCHEMAS["positions"].empty_table(), _NONE), count), count)
        for table in history.batches("positions", [*POSITION_FIELDS, *PLACE_FIELDS]):
            operation = np.searchsorted(op_ids, numbers(table["op_id"], 0)).astype(np.int32)
            self.rows.append(position_columns(table, operation), self._codes(table))
        self.summary = Summary(positions=count, topic_ids=self._topic_ids())


Rows = TypeVar("Rows", RecordColumns, PositionColumns)


def _room(sample: Rows, count: int) -> Rows:
    """Columns to be filled, of the types of a sample."""
    return type(sample)(*(np.empty(count, getattr(sample, column.name).dtype) for column in fields(sample)))


def _record_room(count: int) -> RecordColumns:
    return _room(record_columns(SCHEMAS["records"].empty_table(), _NONE, _NONE), count)


class _Filled(Generic[Rows]):
    """Columns being filled with rows, and the code of each row's place."""

    def __init__(self, room: Rows, count: int) -> None:
        self._room: Rows = room
        self._codes = np.empty(count, np.int32)
        self.count = 0

    def append(self, rows: Rows, codes: npt.NDArray[np.int32]) -> None:
        """Add rows at the end."""
        end = self.count + len(rows)
        for column in fields(rows):
            getattr(self._room, column.name)[self.count : end] = getattr(rows, column.name)
        self._codes[self.count : end] = codes
        self.count = end

    def grouped(self) -> "_Grouped[Rows]":
        """All rows, to be taken by place."""
        return _Grouped(self._room.take(slice(0, self.count)), self._codes[: self.count])


def _rows_by_place(table: pa.Table) -> dict[Place, StateColumns]:
    """`states` by place; those that name no partition say nothing of one."""
    table = table.filter(pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
    rows: dict[Place, list[int]] = defaultdict(list)
    for row, place in enumerate(zip(*(table[name].to_pylist() for name in PLACE_FIELDS), strict=True)):
        rows[place].append(row)
    columns = state_columns(table)
    return {place: columns.take(np.array(own, np.intp)) for place, own in rows.items()}


class _Rows:
    """All rows of a run, to be taken shard by shard."""

    def __init__(
        self,
        operations: OperationColumns,
        records: _Records,
        positions: _Positions,
        states: dict[Place, StateColumns],
    ) -> None:
        self._operations = operations
        self._record_places, self._position_places, self._states = records.places, positions.places, states
        self._sends, self._reads = records.sends.grouped(), records.reads.grouped()
        self._positions = positions.rows.grouped()

    def shards(self, context: Context) -> Iterator[list[LogColumns]]:
        """The logs of each topic name and partition, in that order."""
        places = {*self._record_places, *self._position_places, *self._states}
        logs: dict[tuple[str, int], dict[str | None, list[Place]]] = defaultdict(lambda: defaultdict(list))
        for place in places:
            topic, topic_id, partition = place
            logs[topic, partition][context.resolve(topic, topic_id)].append(place)
        for (topic, partition), by_id in sorted(logs.items()):
            yield [
                self._log(topic, topic_id, partition, own)
                for topic_id, own in sorted(by_id.items(), key=lambda item: item[0] or "")
            ]

    def _log(self, topic: str, topic_id: str | None, partition: int, places: Sequence[Place]) -> LogColumns:
        records = [self._record_places.get(place) for place in places]
        sends, reads = self._sends.of(records), self._reads.of(records)
        positions = self._positions.of([self._position_places.get(place) for place in places])
        used = np.unique(np.concatenate([sends.operation, reads.operation, positions.operation]))
        none = state_columns(SCHEMAS["states"].empty_table())
        states = concatenate([none, *(self._states[place] for place in places if place in self._states)])
        return LogColumns(
            topic=topic,
            topic_id=topic_id,
            partition=partition,
            operations=self._operations.take(used),
            sends=_reindexed(sends, used),
            reads=_reindexed(reads, used),
            positions=_reindexed(positions, used),
            states=states,
        )


def _reindexed(rows: Rows, used: npt.NDArray[np.int32]) -> Rows:
    """Rows whose operations are indexes into the `used` ones."""
    return replace(rows, operation=np.searchsorted(used, rows.operation).astype(np.int32))


class _Grouped(Generic[Rows]):
    """Rows by the code of their place. Where all are of one place, they are not copied."""

    def __init__(self, rows: Rows, codes: npt.NDArray[np.int32]) -> None:
        self._rows: Rows = rows
        self._bounds = np.append(0, np.cumsum(np.bincount(codes, minlength=1)))
        self._order = None if len(self._bounds) == 2 else np.argsort(codes, kind="stable")

    def of(self, codes: Sequence[int | None]) -> Rows:
        """The rows of some codes, in the order of the table."""
        known = [code for code in codes if code is not None and code < len(self._bounds) - 1]
        if self._order is None:
            return self._rows if known else self._rows.take(slice(0, 0))
        parts: list[npt.NDArray[np.intp]] = [self._order[self._bounds[code] : self._bounds[code + 1]] for code in known]
        return self._rows.take(parts[0] if len(parts) == 1 else np.sort(np.concatenate([_NO_ROWS, *parts])))


def _decided(rows: _Rows, context: Context) -> Context:
    """The context once every transaction whose commit is unknown has been looked for among what was read."""
    undecided = context.transactions.undecided
    if not undecided.any():
        return context
    first: dict[int, int] = {}
    for shard in rows.shards(context):
        for log in shard:
            own = log.operations.transaction
            if undecided[own[own >= 0]].any():
                merge_first_reads(first, first_committed_reads(PartitionLog(log, context)))
    return replace(context, transactions=context.transactions.with_first_reads(first))


def _findings(rows: _Rows, context: Context) -> Iterator[Finding]:
    for shard in rows.shards(context):
        yield from judge_shard(shard, context)
