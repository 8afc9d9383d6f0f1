"""A shard as one Arrow table, for engines that move rows between processes.

Rows of four tables lie in one schema, told apart by `kind`; those of operations come once for each place where they
sent, read or passed over something, however often a task had to send them. `shard_logs` is the way back.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from linearizability.anomalies.columns import Int32s, LogColumns
from linearizability.anomalies.context import Context
from linearizability.history.schema import SCHEMAS

OPERATION, SEND, READ, POSITION, STATE = range(5)

_TABLES: Final = {
    "operations": OPERATION_FIELDS,
    "records": RECORD_FIELDS,
    "positions": POSITION_FIELDS,
    "states": STATE_FIELDS,
}
_FIELDS: Final = {
    name: SCHEMAS[table].field(name).type for table, names in _TABLES.items() for name in (*PLACE_FIELDS, *names)
}
SHARD_ROWS: Final = pa.schema([pa.field("kind", pa.int8()), *(pa.field(name, kind) for name, kind in _FIELDS.items())])
"""`kind`, the place, and every column that a check reads of any table; null where the kind has none of it."""


def record_rows(table: pa.Table, compacted: Callable[[str], bool]) -> pa.Table:
    """Rows of `records` (RECORD_FIELDS, the place, direction). A key goes along only where a check reads it."""
    topics = pc.unique(table["topic"]).to_pylist()
    keyed = pa.array([topic for topic in topics if compacted(topic)], pa.string())
    wanted = pc.or_(pc.is_null(table["value"]), pc.is_in(table["topic"], value_set=keyed))
    keys = pc.if_else(wanted, table["key"], pa.scalar(None, pa.string()))
    kind = pc.if_else(pc.equal(table["direction"], "read"), pa.scalar(READ, pa.int8()), pa.scalar(SEND, pa.int8()))
    return _rows(table.set_column(table.column_names.index("key"), "key", keys), kind)


def position_rows(table: pa.Table) -> pa.Table:
    """Rows of `positions` (POSITION_FIELDS and the place)."""
    return _rows(table, _kind(POSITION, table))


def state_rows(table: pa.Table) -> pa.Table:
    """Rows of `states` (STATE_FIELDS and the place); those that name no partition say nothing of one."""
    table = table.filter(pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
    return _rows(table, _kind(STATE, table))


def operation_rows(used_in: pa.Table, operations: pa.Table) -> pa.Table:
    """The operations (OPERATION_FIELDS) of rows that name one, once for each place where they are used."""
    places = used_in.select(["op_id", *PLACE_FIELDS])
    places = places.group_by(["op_id", *PLACE_FIELDS], use_threads=False).aggregate([])
    found = operations.take(pc.index_in(places["op_id"], value_set=operations["op_id"].combine_chunks()))
    for name in PLACE_FIELDS:
        found = found.append_column(name, places[name])
    return _rows(found, _kind(OPERATION, found))


def shard_logs(table: pa.Table, context: Context) -> list[LogColumns]:
    """The logs of one topic name and partition, one per topic id, from all its rows in any order."""
    topic, partition = table["topic"][0].as_py(), table["partition"][0].as_py()
    given = pc.unique(table["topic_id"]).to_pylist()
    resolved = sorted({context.resolve(topic, topic_id) for topic_id in given}, key=lambda topic_id: topic_id or "")
    logs = []
    for topic_id in resolved:
        own = pa.array([other for other in given if context.resolve(topic, other) == topic_id], pa.string())
        rows = table if len(resolved) == 1 else table.filter(pc.is_in(table["topic_id"], value_set=own))
        logs.append(_log(rows, topic, topic_id, partition, context))
    return logs


def _log(table: pa.Table, topic: str, topic_id: str | None, partition: int, context: Context) -> LogColumns:
    by_kind = {kind: table.filter(pc.equal(table["kind"], kind)) for kind in (SEND, READ, POSITION, STATE, OPERATION)}
    op_ids, first = np.unique(numbers(by_kind[OPERATION]["op_id"], 0), return_index=True)
    operations = operation_columns(by_kind[OPERATION].take(first), context.transactions, context.clients)

    def in_order(kind: int, *order: str) -> tuple[pa.Table, Int32s]:
        rows = by_kind[kind].sort_by([(name, "ascending") for name in order])
        return rows, np.searchsorted(op_ids, numbers(rows["op_id"], 0)).astype(np.int32)

    keys = KeyCodes()
    sends, send_operation = in_order(SEND, "op_id", "seq")
    reads, read_operation = in_order(READ, "op_id", "seq")
    positions, position_operation = in_order(POSITION, "op_id", "before")
    return LogColumns(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        operations=operations,
        sends=record_columns(sends, send_operation, keys.of(sends["key"], np.ones(len(sends), np.bool_))),
        reads=record_columns(reads, read_operation, keys.of(reads["key"], np.ones(len(reads), np.bool_))),
        positions=position_columns(positions, position_operation),
        states=state_columns(by_kind[STATE]),
    )


def _rows(table: pa.Table, kind: pa.Array | pa.ChunkedArray) -> pa.Table:
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in list(SHARD_ROWS)[1:]
    ]
    return pa.table([kind, *columns], schema=SHARD_ROWS)


def _kind(code: int, table: pa.Table) -> pa.Array:
    return pa.array(np.full(table.num_rows, code, np.int8))
