"""Gathering of the rows of a run, or of some of its topic partitions, into logs for `anomalies.catalogue`.

Every engine uses it: the local one with all rows of a run, a distributed one with the rows of some topic
partitions. Rows are read once, batch by batch, into compact arrays (about 50 bytes a record), which are then grouped by
topic partition. A shard consists of the logs of one topic name and partition, one log per topic id.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import (
    ASSIGNMENT_FIELDS,
    INPUT_FIELDS,
    OFFSET_FIELDS,
    PLACE_FIELDS,
    POSITION_FIELDS,
    RECORD_FIELDS,
    STATE_FIELDS,
    KeyCodes,
    Place,
    assignment_columns,
    input_columns,
    numbers,
    offset_columns,
    place_codes,
    position_columns,
    record_columns,
    state_columns,
    wanted_keys,
)
from linearizability.anomalies.catalogue import (
    ShardJudgement,
    first_committed_reads,
    judge_shard,
    merge_first_reads,
)
from linearizability.anomalies.columns import (
    AssignmentColumns,
    InputColumns,
    Int64s,
    LogColumns,
    OffsetColumns,
    OperationColumns,
    PositionColumns,
    RecordColumns,
    StateColumns,
)
from linearizability.anomalies.context import Context
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.summary import Summary
from linearizability.history.schema import SCHEMAS

SHARD_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "records": (*RECORD_FIELDS, *PLACE_FIELDS, "direction"),
    "positions": (*POSITION_FIELDS, *PLACE_FIELDS),
    "states": (*STATE_FIELDS, *PLACE_FIELDS),
    "offsets": (*OFFSET_FIELDS, *PLACE_FIELDS),
    "inputs": (*INPUT_FIELDS, *PLACE_FIELDS),
    "assignments": (*ASSIGNMENT_FIELDS, *PLACE_FIELDS),
}
"""The tables and columns of a shard, besides operations."""

_NONE = np.empty(0, np.int32)
_NO_RECORDS: Final = record_columns(SCHEMAS["records"].empty_table(), _NONE, _NONE)
_NO_POSITIONS: Final = position_columns(SCHEMAS["positions"].empty_table(), _NONE)
_NO_ROWS = np.empty(0, np.intp)


class Source(Protocol):
    """The source of the rows: the tables of SHARD_FIELDS, at least one batch of each."""

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""

    def batches(self, name: str, columns: Sequence[str]) -> Iterable[pa.Table]:
        """Yield batches of some columns of a table, in order."""


class _Placed:
    """Rows of one table as arrays, and the place (topic, topic id, partition) of each."""

    def __init__(self) -> None:
        self.places: dict[Place, int] = {}

    def _codes(self, table: pa.Table) -> npt.NDArray[np.int32]:
        places, codes = place_codes(table)
        known = [self.places.setdefault(place, len(self.places)) for place in places]
        return np.array(known, np.int32)[codes]

    def _topic_ids(self) -> frozenset[tuple[str, str]]:
        return frozenset((topic, topic_id) for topic, topic_id, _ in self.places if topic_id is not None)


def _operation_indexes(table: pa.Table, op_ids: Int64s) -> npt.NDArray[np.int32]:
    """Return, per row of a table, the index of its operation in `op_ids`."""
    return np.searchsorted(op_ids, numbers(table["op_id"], 0)).astype(np.int32)


class _Records(_Placed):
    """All rows of `records`, by direction. Each row has the index of its operation instead of the op_id."""

    def __init__(self, source: Source, op_ids: Int64s, compacted: Callable[[str], bool]) -> None:
        super().__init__()
        count = source.count("records")
        # Each direction has room for all rows, because pages that are never written to take no memory.
        self.sends, self.reads = _Filled(_record_room(count), count), _Filled(_record_room(count), count)
        keys = KeyCodes()
        for table in source.batches("records", SHARD_FIELDS["records"]):
            operation = _operation_indexes(table, op_ids)
            key = keys.of(table["key"], wanted_keys(table, compacted))
            rows, codes = record_columns(table, operation, key), self._codes(table)
            is_read = pc.equal(table["direction"], "read").to_numpy()
            self.sends.append(rows.take(~is_read), codes[~is_read])
            self.reads.append(rows.take(is_read), codes[is_read])
        keys.settle(self.sends.rows.key, self.reads.rows.key)
        self.summary = Summary(records=count, reads=self.reads.count, topic_ids=self._topic_ids())


class _Positions(_Placed):
    """All rows of `positions`. Each row has the index of its operation instead of the op_id."""

    def __init__(self, source: Source, op_ids: Int64s) -> None:
        super().__init__()
        count = source.count("positions")
        self.rows = _Filled(_room(_NO_POSITIONS, count), count)
        for table in source.batches("positions", SHARD_FIELDS["positions"]):
            self.rows.append(position_columns(table, _operation_indexes(table, op_ids)), self._codes(table))
        self.summary = Summary(positions=count, topic_ids=self._topic_ids())


Rows = TypeVar("Rows", RecordColumns, PositionColumns)


def _room(sample: Rows, count: int) -> Rows:
    """Return uninitialised columns for `count` rows, with the types of a sample."""
    return type(sample)(*(np.empty(count, getattr(sample, column.name).dtype) for column in fields(sample)))


def _record_room(count: int) -> RecordColumns:
    return _room(_NO_RECORDS, count)


class _Filled(Generic[Rows]):
    """Columns that are filled with rows, and the code of each row's place."""

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

    @property
    def rows(self) -> Rows:
        """The rows appended so far; not a copy."""
        return self._room.take(slice(0, self.count))

    def grouped(self) -> "_Grouped[Rows]":
        """Return all rows, grouped by place."""
        return _Grouped(self.rows, self._codes[: self.count])


SmallRows = TypeVar("SmallRows", StateColumns, OffsetColumns, InputColumns, AssignmentColumns)


class _ByPlace(Generic[SmallRows]):
    """Rows of a small table by place; rows without a topic or a partition are left out."""

    def __init__(self, source: Source, name: str, columns: Callable[[pa.Table], SmallRows]) -> None:
        table = pa.concat_tables(source.batches(name, SHARD_FIELDS[name]))
        table = table.filter(pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
        self._rows: SmallRows = columns(table)
        places, codes = place_codes(table)
        order, bounds = np.argsort(codes, kind="stable"), np.append(0, np.cumsum(np.bincount(codes)))
        self.places: dict[Place, npt.NDArray[np.intp]] = {
            place: order[bounds[code] : bounds[code + 1]] for code, place in enumerate(places)
        }

    def of(self, places: Iterable[Place]) -> SmallRows:
        """Return the rows of some places."""
        return self._rows.take(np.concatenate([_NO_ROWS, *(self.places.get(place, _NO_ROWS) for place in places)]))


class ShardRows:
    """All rows of a source, grouped by shard; `op_ids`: the ids of their operations, ascending."""

    def __init__(self, source: Source, op_ids: Int64s, compacted: Callable[[str], bool]) -> None:
        records, positions = _Records(source, op_ids, compacted), _Positions(source, op_ids)
        self.records, self.positions = records.summary, positions.summary
        """Summaries of the tables `records` and `positions`, for a caller that has not summarised them."""
        self._record_places, self._position_places = records.places, positions.places
        self._sends, self._reads = records.sends.grouped(), records.reads.grouped()
        self._positions = positions.rows.grouped()
        self._states = _ByPlace(source, "states", state_columns)
        self._offsets = _ByPlace(source, "offsets", lambda rows: offset_columns(rows, _operation_indexes(rows, op_ids)))
        self._inputs = _ByPlace(source, "inputs", lambda rows: input_columns(rows, _operation_indexes(rows, op_ids)))
        self._assignments = _ByPlace(source, "assignments", assignment_columns)

    def first_reads(self, operations: OperationColumns, context: Context) -> dict[int, int]:
        """Return, per transaction of unknown outcome, when a read_committed read first returned one of its records."""
        undecided = context.transactions.undecided
        first: dict[int, int] = {}
        for shard in self.shards(operations, context) if undecided.any() else ():
            for log in shard:
                own = log.operations.transaction
                if undecided[own[own >= 0]].any():
                    merge_first_reads(first, first_committed_reads(PartitionLog(log, context)))
        return first

    def judged(self, operations: OperationColumns, context: Context) -> Iterator[ShardJudgement]:
        """Yield the judgement of every shard, given the final context."""
        for shard in self.shards(operations, context):
            yield judge_shard(shard, context)

    def shards(self, operations: OperationColumns, context: Context) -> Iterator[list[LogColumns]]:
        """Yield the shards, sorted by topic name and partition: for each the list of its logs."""
        small = (self._states.places, self._offsets.places, self._inputs.places, self._assignments.places)
        places = {*self._record_places, *self._position_places}.union(*small)
        logs: dict[tuple[str, int], dict[str | None, list[Place]]] = defaultdict(lambda: defaultdict(list))
        for place in places:
            topic, topic_id, partition = place
            logs[topic, partition][context.resolve(topic, topic_id)].append(place)
        for (topic, partition), by_id in sorted(logs.items()):
            yield [
                self._log(operations, topic, topic_id, partition, own)
                for topic_id, own in sorted(by_id.items(), key=lambda item: item[0] or "")
            ]

    def _log(
        self,
        operations: OperationColumns,
        topic: str,
        topic_id: str | None,
        partition: int,
        places: Sequence[Place],
    ) -> LogColumns:
        records = [self._record_places.get(place) for place in places]
        sends, reads = self._sends.of(records), self._reads.of(records)
        positions = self._positions.of([self._position_places.get(place) for place in places])
        offsets, inputs = self._offsets.of(places), self._inputs.of(places)
        used = np.unique(np.concatenate([rows.operation for rows in (sends, reads, positions, offsets, inputs)]))
        return LogColumns(
            topic=topic,
            topic_id=topic_id,
            partition=partition,
            operations=operations.take(used),
            sends=_reindexed(sends, used),
            reads=_reindexed(reads, used),
            positions=_reindexed(positions, used),
            states=self._states.of(places),
            offsets=_reindexed(offsets, used),
            inputs=_reindexed(inputs, used),
            assignments=self._assignments.of(places),
        )


Indexed = TypeVar("Indexed", RecordColumns, PositionColumns, OffsetColumns, InputColumns)


def _reindexed(rows: Indexed, used: npt.NDArray[np.int32]) -> Indexed:
    """Return the rows, with each operation replaced by its place among the `used` operations."""
    return replace(rows, operation=np.searchsorted(used, rows.operation).astype(np.int32))


class _Grouped(Generic[Rows]):
    """Rows by the code of their place. If all rows belong to one place, they are not copied."""

    def __init__(self, rows: Rows, codes: npt.NDArray[np.int32]) -> None:
        self._rows: Rows = rows
        self._bounds = np.append(0, np.cumsum(np.bincount(codes, minlength=1)))
        self._order = None if len(self._bounds) == 2 else np.argsort(codes, kind="stable")

    def of(self, codes: Sequence[int | None]) -> Rows:
        """Return the rows of some codes, in the order of the table."""
        known = [code for code in codes if code is not None and code < len(self._bounds) - 1]
        if self._order is None:
            return self._rows if known else self._rows.take(slice(0, 0))
        parts: list[npt.NDArray[np.intp]] = [self._order[self._bounds[code] : self._bounds[code + 1]] for code in known]
        return self._rows.take(parts[0] if len(parts) == 1 else np.sort(np.concatenate([_NO_ROWS, *parts])))
