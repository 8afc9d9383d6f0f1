"""What lies on disk of a shard: rows of `records` by partition and offset, with what checks ask of their operation.

Sends and reads are files of their own, in the order (log, offset), numbers only where a number will do: an unknown
offset, epoch or node is -1, what is true or false is a bit of `flags`. Where a send was not told its offset it stands
at the lowest at which its value was read, at -1 if it was not. Everything else of the format that the checks read comes
along as it is, the place of each row as the number of its log.
"""

from typing import Final

import pyarrow as pa

from linearizability.anomalies.arrow import OPERATION_FIELDS, PLACE_FIELDS
from linearizability.anomalies.gather import SHARD_FIELDS
from linearizability.history.schema import SCHEMAS

LOG: Final = pa.field("log", pa.int32(), nullable=False)
"""Which of the layout's places a row is of."""


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
"""Flags of a row; neither of the last two where nobody said."""
OK, FAIL, IN_TRANSACTION, IN_VAIN = 8, 16, 32, 64
"""Flags of a send: its operation's."""
COVERED, BACK, SERVED = 128, 256, 512
"""Flags of a read: its operation covers the offset; did not return everything in the order of offsets; was ok, and of a
broker, not of a disk."""

OPERATIONS: Final = pa.schema([SCHEMAS["operations"].field(name) for name in OPERATION_FIELDS])
SMALL: Final = ("positions", "states", "offsets", "inputs", "assignments")
"""Tables of which a shard is never cut."""


POLLS: Final = _numbers(process=pa.int32(), polls=pa.int8())
"""What a row of `positions` says of its operation besides: whether it is a poll, and whose."""


def small_schema(name: str) -> pa.Schema:
    """Rows of a small table in a shard."""
    own = [SCHEMAS[name].field(f) for f in SHARD_FIELDS[name] if f not in PLACE_FIELDS]
    return pa.schema([LOG, *own, *(POLLS if name == "positions" else ())])
