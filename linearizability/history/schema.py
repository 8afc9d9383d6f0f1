"""The eight tables of a history, format version 1, column by column.

This module is the only definition: writer, reader, validator and the public page `docs/history-format.md` follow it.
A table is written with exactly these Arrow types. In Arrow every column may be null; `Column.required` is whether the
format forbids a null, which the validator checks.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

FORMAT: Final = 1
"""The version of the format in `run.json`."""

OUTCOMES: Final = ("ok", "fail", "info")
DIRECTIONS: Final = ("send", "read")
CAUSES: Final = ("read", "assign", "seek", "reset")
OFFSET_DIRECTIONS: Final = ("commit", "fetched")
ASSIGNMENT_EVENTS: Final = ("assigned", "revoked", "lost")
ISOLATIONS: Final = ("read_committed", "read_uncommitted")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type, its meaning, and the rules for its values."""

    name: str
    type: pa.DataType
    meaning: str
    required: bool = False
    """Whether null is forbidden."""
    values: tuple[str, ...] | None = None
    """All valid values, if the set is closed."""
    minimum: int | None = None
    """The lowest valid value."""
    maximum: int = 2**62
    """The highest valid value of a column of 64-bit integers with a minimum."""
    unknown: int | None = None
    """The value that Kafka's protocol has for unknown. The reader returns null instead."""


def _required(
    name: str, kind: pa.DataType, meaning: str, values: tuple[str, ...] | None = None, minimum: int | None = None
) -> Column:
    return Column(name, kind, meaning, required=True, values=values, minimum=minimum)


def _reported(name: str, kind: pa.DataType, meaning: str) -> Column:
    """Return a column for an offset, watermark, epoch or generation from Kafka, which uses -1 for unknown."""
    return Column(name, kind, meaning, minimum=0, unknown=-1)


_TOPIC: Final = _required("topic", pa.string(), "topic name")
_TOPIC_ID: Final = Column("topic_id", pa.string(), "topic id; null if unknown")
_PARTITION: Final = _required("partition", pa.int32(), "partition of the topic, from 0", minimum=0)
_OP_ID: Final = _required("op_id", pa.int64(), "operation to which the row belongs")
_HIGH_WATERMARK: Final = _reported("high_watermark", pa.int64(), "from the response; null if unknown")
_LAST_STABLE_OFFSET: Final = _reported("last_stable_offset", pa.int64(), "from the response; null if unknown")
_LOG_START_OFFSET: Final = _reported("log_start_offset", pa.int64(), "from the response; null if unknown")

OPERATIONS: Final = (
    _required("op_id", pa.int64(), "unique in the run, ascending by invocation"),
    _required("process", pa.int32(), "number of a logical client; its operations do not overlap, except produces"),
    _required("f", pa.string(), "what was called: produce, poll, fetch, list_offsets, init_producer_id, …"),
    _required("invoke_ns", pa.int64(), "when the operation was called, on the run's one monotonic clock"),
    Column("complete_ns", pa.int64(), "when the operation returned, on the same clock; null if it never did"),
    _required(
        "outcome",
        pa.string(),
        "ok: the operation took effect; fail: it did not and never will; info: unknown",
        OUTCOMES,
    ),
    Column("error", pa.string(), "Kafka error name; null if none"),
    Column("node", pa.int32(), "broker that responded; null if unknown"),
    Column("api_version", pa.int16(), "version of the request; null if unknown"),
    Column("attempts", pa.int16(), "number of times the request was sent; null if unknown"),
    Column("txn_id", pa.string(), "transactional id"),
    Column("txn_seq", pa.int64(), "number of the transaction in the process; also set for begin, commit and abort"),
    Column(
        "producer_id",
        pa.int64(),
        "id that was used or returned; null: not idempotent; -1: idempotent, with an unknown id",
        minimum=-1,
        maximum=2**63 - 1,
    ),
    _reported("producer_epoch", pa.int16(), "epoch that was used or returned"),
    Column("group", pa.string(), "consumer group"),
    Column("member_id", pa.string(), "member of the group"),
    Column("instance_id", pa.string(), "`group.instance.id` of a static member"),
    _reported("generation", pa.int32(), "generation, or member epoch"),
    Column("isolation", pa.string(), "isolation level of a read", values=ISOLATIONS),
    Column("acks", pa.int16(), "acks of a produce; -1 is all"),
    Column("topic", pa.string(), "topic of the operation, if it has only one"),
    Column("topic_id", pa.string(), "id of that topic"),
    Column("partition", pa.int32(), "partition of the operation, if it has only one"),
    Column(
        "offset",
        pa.int64(),
        "requested offset; for delete_records the new log start offset, or -1 for the high watermark",
    ),
)

RECORDS: Final = (
    _OP_ID,
    _required("seq", pa.int32(), "position inside the operation, from 0; unique by operation and direction", minimum=0),
    _required("direction", pa.string(), "sent by a produce, or returned by a read", DIRECTIONS),
    _TOPIC,
    Column("topic_id", pa.string(), "topic id; null if unknown. A topic that is created again has another id"),
    _PARTITION,
    _reported("offset", pa.int64(), "acknowledged or read offset; null if unknown"),
    Column("value", pa.int64(), "value, unique among the sends of a partition; null for a tombstone"),
    Column("key", pa.string(), "record key; null if none"),
    _reported(
        "leader_epoch",
        pa.int32(),
        "for a read, the epoch of the batch; for a send, the epoch in which `node` acknowledged it; null if unknown",
    ),
    Column("timestamp_ms", pa.int64(), "record timestamp; null if unknown"),
    Column(
        "intact",
        pa.bool_(),
        "whether key, headers, payload checksum (and timestamp, under CreateTime) are as sent; never null in a read",
    ),
)

POSITIONS: Final = (
    _OP_ID,
    _TOPIC,
    _TOPIC_ID,
    _PARTITION,
    _required(
        "before",
        pa.int64(),
        "position before the operation; if the cause is not `read`, the same as `after`",
        minimum=0,
    ),
    _required("after", pa.int64(), "position after the operation", minimum=0),
    _required("cause", pa.string(), "reason for the position", CAUSES),
    _HIGH_WATERMARK,
    _LAST_STABLE_OFFSET,
    _LOG_START_OFFSET,
)

OFFSETS: Final = (
    _OP_ID,
    _required("group", pa.string(), "consumer group"),
    _TOPIC,
    _TOPIC_ID,
    _PARTITION,
    _reported("offset", pa.int64(), "group offset; null if there is none"),
    _required("direction", pa.string(), "written by the operation, or returned to it", OFFSET_DIRECTIONS),
)

ASSIGNMENTS: Final = (
    _required("at_ns", pa.int64(), "when the client was notified, on the run's one monotonic clock"),
    _required("process", pa.int32(), "the client"),
    Column("group", pa.string(), "consumer group"),
    Column("member_id", pa.string(), "member of the group"),
    Column("instance_id", pa.string(), "`group.instance.id` of a static member"),
    _reported("generation", pa.int32(), "generation, or member epoch"),
    _TOPIC,
    _TOPIC_ID,
    _PARTITION,
    _required("event", pa.string(), "what happened to the partition", ASSIGNMENT_EVENTS),
)

INPUTS: Final = (
    _required("op_id", pa.int64(), "the produce that sent the output record"),
    _required("seq", pa.int32(), "position of the output record in the produce", minimum=0),
    _required("topic", pa.string(), "topic of the input record"),
    Column("topic_id", pa.string(), "id of that topic; null if unknown"),
    _required("partition", pa.int32(), "partition of the input record", minimum=0),
    _required("offset", pa.int64(), "offset of the input record", minimum=0),
)

STATES: Final = (
    _required("asked_ns", pa.int64(), "when the request was sent, on the run's one monotonic clock"),
    _required("answered_ns", pa.int64(), "when the response arrived, on the same clock"),
    _required("source", pa.string(), "kind of request: list_offsets, fetch, metadata, log_dir, …"),
    Column("isolation", pa.string(), "isolation level of the request", values=ISOLATIONS),
    Column("node", pa.int32(), "broker that responded"),
    Column("topic", pa.string(), "topic name"),
    _TOPIC_ID,
    Column("partition", pa.int32(), "partition of the topic, from 0", minimum=0),
    Column("leader", pa.int32(), "leader, from the response"),
    _reported("leader_epoch", pa.int32(), "leader epoch, from the response"),
    Column("isr", pa.list_(pa.field("element", pa.int32())), "in-sync replicas, from the response"),
    _reported(
        "high_watermark",
        pa.int64(),
        "from the response; for list_offsets with read_uncommitted, the returned end offset",
    ),
    _reported(
        "last_stable_offset",
        pa.int64(),
        "from the response; for list_offsets with read_committed, the returned end offset",
    ),
    _LOG_START_OFFSET,
    _reported("log_end_offset", pa.int64(), "log end offset of the queried replica"),
    Column("error", pa.string(), "Kafka error name; null if none"),
)

FAULTS: Final = (
    _required("fault_id", pa.int64(), "number of the fault in the run"),
    _required("kind", pa.string(), "kill, power, disk, wipe, pause, cut, delay, clock, configuration, …"),
    Column("target", pa.string(), "a node, a link `1->2`, a topic"),
    Column("argument", pa.string(), "parameter of the fault: a duration, a setting"),
    _required("inject_ns", pa.int64(), "when the fault began, on the run's one monotonic clock"),
    Column("heal_ns", pa.int64(), "when the fault ended, on the same clock; null if it never did"),
)

COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "operations": OPERATIONS,
    "records": RECORDS,
    "positions": POSITIONS,
    "offsets": OFFSETS,
    "assignments": ASSIGNMENTS,
    "inputs": INPUTS,
    "states": STATES,
    "faults": FAULTS,
}
"""The tables by name, in the order of the format page."""

SCHEMAS: Final[dict[str, pa.Schema]] = {
    name: pa.schema([pa.field(column.name, column.type) for column in columns]) for name, columns in COLUMNS.items()
}
"""The Arrow schema of every table."""

OPERATION_TABLES: Final = ("records", "positions", "offsets", "inputs")
"""The tables whose rows belong to an operation, by `op_id`."""


@cache
def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table with this schema and no rows. It is cached, because checks of small histories need it often."""
    return schema.empty_table()
