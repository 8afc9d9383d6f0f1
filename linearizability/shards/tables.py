"""Tables of a shard on disk: rows of `records` by partition and offset, with columns of their operation for checks.

Sends and reads are separate files, in the order (log, offset), with numbers where possible: an unknown offset, epoch or
node is -1, booleans are bits of `flags`. The column `at` of a send is its acknowledged offset. If that is unknown, `at`
is the lowest offset at which the value was read, or -1. Other columns that the checks read are copied unchanged. Each
row has the number of its log instead of topic, topic id and partition.
"""

from typing import Final

import pyarrow as pa

from linearizability.anomalies.arrow import OPERATION_FIELDS, PLACE_FIELDS
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.history.schema import SCHEMAS

LOG: Final = pa.field("log", pa.int32(), nullable=False)
"""The number of a row's log: its index in `Layout.places`."""


def _numbers(**types: pa.DataType) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name, kind in types.items()]


_RECORD: Final = _numbers(
    op_id=pa.int64(), seq=pa.int32(), offset=pa.int64(), value=pa.int64(), leader_epoch=pa.int32()
)
_REST: Final = [*_numbers(flags=pa.int16()), pa.field("key", pa.string())]
SENDS: Final = pa.schema(
    [
        LOG,
        *_numbers(at=pa.int64()),
        *_RECORD,
        *_numbers(process=pa.int32(), node=pa.int32(), invoke_ns=pa.int64(), complete_ns=pa.int64()),
        *_REST,
    ]
)
READS: Final = pa.schema([LOG, *_RECORD, *_numbers(complete_ns=pa.int64()), *_REST])

TOMBSTONE, INTACT, CORRUPT = 1, 2, 4
"""Flags of a row. If it is unknown whether the record is intact, neither INTACT nor CORRUPT is set."""
OK, FAIL, IN_TRANSACTION, NOT_SERVED = 8, 16, 32, 64
"""Flags of a send, from its operation."""
COVERED, BACK, SERVED = 128, 256, 512
"""Flags of a read, from its operation. COVERED: the operation covers the offset. BACK: it did not return its records in
the order of offsets. SERVED: it was ok, and a broker served it (it did not read a replica's disk)."""

OPERATIONS: Final = pa.schema([SCHEMAS["operations"].field(name) for name in OPERATION_FIELDS])
SMALL: Final = ("positions", "states", "offsets", "inputs", "assignments")
"""Tables that are never split."""


POLLS: Final = _numbers(process=pa.int32(), polls=pa.int8())
"""Further columns of `positions` about the operation: its process, and whether it is a poll."""


def small_schema(name: str) -> pa.Schema:
    """Return the schema of a small table in a shard."""
    own = [SCHEMAS[name].field(f) for f in SHARD_FIELDS[name] if f not in PLACE_FIELDS]
    return pa.schema([LOG, *own, *(POLLS if name == "positions" else ())])
