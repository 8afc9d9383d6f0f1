"""The rows of one topic partition as plain arrays, in the shape that every check reads.

Times are nanoseconds on the run's clock, NEVER_NS where there is none; an unknown offset is NO_OFFSET; an operation is
an index into `OperationColumns`, which is sorted by op_id, so that indexes compare as op_ids do.
"""

from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]
Indexes = npt.NDArray[np.intp]
Texts = npt.NDArray[np.object_]
"""Strings; None where there is none."""

NO_OFFSET: Final = -(2**63)
NO_KEY: Final = -1
NO_EPOCH: Final = -1
NO_NODE: Final = -1

OK, FAIL, INFO = 0, 1, 2
"""Codes of `outcome`."""
UNKNOWN_ISOLATION, READ_UNCOMMITTED, READ_COMMITTED = 0, 1, 2
"""Codes of `isolation`."""


class _Columns:
    """Parallel arrays of one length."""

    __slots__ = ()

    def __len__(self) -> int:
        first: int = len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]
        return first

    def take(self, rows: Indexes | Flags | slice) -> Self:
        """Return the same columns for some of the rows."""
        return type(self)(*(getattr(self, column.name)[rows] for column in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class OperationColumns(_Columns):
    """The operations of a shard, by op_id ascending."""

    op_id: Int64s
    process: Int32s
    invoke_ns: Int64s
    complete_ns: Int64s
    outcome: Int8s
    acks: npt.NDArray[np.int16]
    """-1 is all. Unknown acks are -1 for an idempotent producer and 1, which promises nothing, for any other."""
    isolation: Int8s
    idempotent: Flags
    producer_id: Int64s
    producer_epoch: Int32s
    transaction: Int32s
    """Index into the run's `Transactions`, -1 where there is none."""
    node: Int32s
    """The broker that responded, NO_NODE where unknown."""
    polls: Flags
    """Whether it is a consumer's poll: a read that continues where the previous one ended."""
    reads_disk: Flags
    """Whether it read a replica from a node's disk (`read_replica`)."""
    not_served: Flags
    """Whether it failed because no broker served it, according to its error."""
    sent_once: Flags
    """Whether it is known to have been sent only once (`attempts` is 1), so that no other node was tried."""


@dataclass(frozen=True, slots=True)
class RecordColumns(_Columns):
    """Rows of `records` of one direction."""

    operation: Int32s
    seq: Int32s
    offset: Int64s
    value: Int64s
    valued: Flags
    """False for a tombstone, whose `value` has no meaning."""
    key: Int32s
    """The code of the key, NO_KEY where there is none; filled only where a check reads it."""
    leader_epoch: Int32s
    corrupt: Flags

    def first_rows(self, rows: Indexes, ids: Int32s | Indexes) -> Indexes:
        """Return one of the rows per id, by id: the one with the lowest offset and, among these, the lowest operation.

        :param ids: the id of each row of the table, not negative.
        """
        # Unsigned, an unknown offset (NO_OFFSET) comes last.
        order = rows[np.lexsort((self.operation[rows], self.offset[rows].astype(np.uint64), ids[rows]))]
        first: Indexes = order[np.flatnonzero(np.diff(ids[order], prepend=-1))]
        return first


@dataclass(frozen=True, slots=True)
class PositionColumns(_Columns):
    """Rows of `positions`."""

    operation: Int32s
    before: Int64s
    after: Int64s
    is_read: Flags
    last_stable_offset: Int64s
    log_start_offset: Int64s


@dataclass(frozen=True, slots=True)
class StateColumns(_Columns):
    """Rows of `states`."""

    requested_ns: Int64s
    """When the request was sent: the column `asked_ns`."""
    received_ns: Int64s
    """When the response arrived: the column `answered_ns`."""
    end_offset: Int64s
    """The offset that a read_uncommitted list_offsets returned without error, else NO_OFFSET."""
    leader_epoch: Int32s
    node: Int32s
    """The node that responded, NO_NODE where unknown."""
    from_leader: Flags
    """Whether only a leader can have returned it: list_offsets or fetch, without error, with a known epoch."""
    high_watermark: Int64s
    last_stable_offset: Int64s
    log_start_offset: Int64s
    isr: npt.NDArray[np.object_]
    """Tuples of node ids, None where unknown."""
    describes_quorum: Flags
    """Whether it describes the metadata quorum (`describe_quorum`); `isr` then holds the voters."""


@dataclass(frozen=True, slots=True)
class OffsetColumns(_Columns):
    """Rows of `offsets`."""

    operation: Int32s
    group: Texts
    offset: Int64s
    """NO_OFFSET where there is none."""
    is_commit: Flags
    """Whether the operation wrote it; otherwise the operation read it."""


@dataclass(frozen=True, slots=True)
class InputColumns(_Columns):
    """Rows of `inputs` whose input record is in this partition; `operation` is the produce of the output record."""

    operation: Int32s
    offset: Int64s


@dataclass(frozen=True, slots=True)
class AssignmentColumns(_Columns):
    """Rows of `assignments`."""

    at_ns: Int64s
    process: Int64s
    group: Texts
    member_id: Texts
    instance_id: Texts
    generation: Int64s
    """NO_OFFSET where unknown."""
    is_assigned: Flags


@dataclass(frozen=True, slots=True)
class LogColumns:
    """All rows of one topic partition of one topic id."""

    topic: str
    topic_id: str | None
    partition: int
    operations: OperationColumns
    sends: RecordColumns
    reads: RecordColumns
    positions: PositionColumns
    states: StateColumns
    offsets: OffsetColumns
    inputs: InputColumns
    assignments: AssignmentColumns
