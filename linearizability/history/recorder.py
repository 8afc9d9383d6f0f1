"""Recorder: converts the calls of a client driver into rows of the history.

Three rules keep the times and ids correct:

- op_id and invoke_ns are taken under one lock, so that the order of ids is the order of invocations, whatever the
  threads do. complete_ns is taken when `complete` is entered, after the response has arrived.
- `invoke` is called before the request is sent, `complete` after its response was read, so that the operation takes
  effect between the two times.
- An operation that never completes is written as info with its sends, and its complete_ns is null. It is written at
  the end of the run, or, if the run is killed, in the journal.
"""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from linearizability.history.buffer import Block, Row, Rows
from linearizability.history.errors import HistoryError
from linearizability.history.schema import OUTCOMES, SCHEMAS
from linearizability.history.writer import Unfinished


# Sent, Read and Position are tuples rather than dataclasses: a client creates many, and one `zip` converts them into
# columns.
class Sent(NamedTuple):
    """One record that a produce sends."""

    value: int | None
    key: str | None = None
    timestamp_ms: int | None = None


class Read(NamedTuple):
    """One record that a read returned. The fields are columns of `records`."""

    topic: str
    topic_id: str | None
    partition: int
    offset: int | None
    value: int | None
    key: str | None = None
    leader_epoch: int | None = None
    timestamp_ms: int | None = None
    intact: bool = True


class Position(NamedTuple):
    """The range that a read passed, or the target of a move. The fields are columns of `positions`."""

    topic: str
    topic_id: str | None
    partition: int
    before: int
    after: int
    cause: str = "read"
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None


class Writer(Protocol):
    """Destination of rows, for example the disk (`HistoryWriter`)."""

    def begin(self, unfinished: Unfinished) -> None:
        """Record that an operation or a fault has begun; `unfinished.rows()` has its rows if it never ends."""

    def end(self, unfinished: Unfinished, rows: Sequence[Rows | Block]) -> None:
        """Record that an operation or a fault has ended, with its rows."""

    def append_rows(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows."""

    def set_topic(self, name: str, properties: Mapping[str, str]) -> None:
        """Add a topic to `run.json`."""

    def set_client(self, process: int, properties: Mapping[str, str]) -> None:
        """Add a client to `run.json`."""


_SET_BY_RECORDER: Final = frozenset({"op_id", "process", "f", "invoke_ns", "complete_ns", "outcome", "error"})


@dataclass(slots=True, eq=False)
class _Invoked:
    """An operation between its invocation and its completion."""

    row: Row
    sends: Sequence[Sent]

    def rows(self) -> list[Rows | Block]:
        rows: list[Rows | Block] = [Rows("operations", (self.row,))]
        if self.sends:
            rows.append(_send_block(self.row, self.sends, offsets=None, leader_epoch=None))
        return rows


@dataclass(slots=True, eq=False)
class _Injected:
    """A fault between its beginning and its end."""

    row: Row

    def rows(self) -> list[Rows | Block]:
        return [Rows("faults", (self.row,))]


class Recorder:
    """Recorder of the operations of any number of clients and threads through one writer.

    A writer has one recorder. `clock` returns nanoseconds and never goes back; callers take the times of states and
    assignments from it too (`now_ns`). Every method may raise HistoryError for disk errors, and TypeError for a column
    that the table does not have.
    """

    def __init__(self, writer: Writer, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._writer = writer
        self.now_ns: Final = clock
        self._lock = threading.Lock()
        self._op_ids = itertools.count(1)
        self._fault_ids = itertools.count(1)
        self._invoked: dict[int, _Invoked] = {}
        self._acknowledged_ends: dict[tuple[str, int], int] = {}

    def acknowledged_end(self, topic: str, partition: int) -> int:
        """Return the offset after the highest one that was acknowledged to a producer; 0 if none was."""
        return self._acknowledged_ends.get((topic, partition), 0)

    def invoke(self, process: int, f: str, sends: Sequence[Sent] = (), **operation_columns: Any) -> int:
        """Record the invocation of an operation, just before the call. Return its op_id.

        With `sends`, the columns `topic` and `partition` are required: a produce has one topic partition.
        """
        _check_operation_columns(operation_columns)
        if sends and (operation_columns.get("topic") is None or operation_columns.get("partition") is None):
            raise TypeError(f"{f}: an operation that sends records names its topic and its partition")
        with self._lock:
            op_id = next(self._op_ids)
            row = {"op_id": op_id, "process": process, "f": f, "invoke_ns": self.now_ns(), "outcome": "info"}
            invoked = _Invoked({**operation_columns, **row}, tuple(sends))
            self._invoked[op_id] = invoked
            self._writer.begin(invoked)
        return op_id

    def complete(
        self,
        op_id: int,
        outcome: str,
        error: str | None = None,
        *,
        base_offset: int | None = None,
        offsets: Sequence[int | None] | None = None,
        leader_epoch: int | None = None,
        reads: Sequence[Read] = (),
        positions: Sequence[Position] = (),
        **operation_columns: Any,
    ) -> None:
        """Record the completion of an operation.

        The offsets of the sends are given in one of two ways: `offsets` has one offset for each send, or `base_offset`
        is the offset of the first send, and the others follow it without gaps. `leader_epoch` is the epoch in which the
        sends were acknowledged, if known. Columns given here override those of `invoke`.
        """
        complete_ns = self.now_ns()
        if outcome not in OUTCOMES:
            raise ValueError(f"outcome {outcome!r} is not one of {', '.join(OUTCOMES)}")
        _check_operation_columns(operation_columns)
        invoked = self._invoked.get(op_id)
        if invoked is None:
            raise _not_invoked(op_id)
        ended = {"complete_ns": complete_ns, "outcome": outcome, "error": error}
        row = {**invoked.row, **operation_columns, **ended}
        rows: list[Rows | Block] = [Rows("operations", (row,))]
        if invoked.sends:
            if offsets is None and base_offset is not None:
                offsets = range(base_offset, base_offset + len(invoked.sends))
            rows.append(_send_block(row, invoked.sends, offsets, leader_epoch))
            self._note_acknowledged((row["topic"], row["partition"]), offsets or ())
        if reads:
            rows.append(_read_block(op_id, reads))
        if positions:
            rows.append(_position_block(op_id, positions))
        if self._invoked.pop(op_id, None) is None:  # completed by another thread
            raise _not_invoked(op_id)
        self._writer.end(invoked, rows)

    def state(self, **columns: Any) -> None:
        """Record what a node reported about a partition: one row of `states`."""
        self._append("states", [columns])

    def assignment(self, **columns: Any) -> None:
        """Record that a partition was assigned to, revoked from or lost by a client: one row of `assignments`."""
        self._append("assignments", [{"at_ns": self.now_ns(), **columns}])

    def group_offsets(self, op_id: int, rows: Sequence[Row]) -> None:
        """Record group offsets that an operation committed or fetched: rows of `offsets`."""
        self._append("offsets", [{**row, "op_id": op_id} for row in rows])

    def inputs(self, op_id: int, rows: Sequence[Row]) -> None:
        """Record the input records of an operation's sends: rows of `inputs`."""
        self._append("inputs", [{**row, "op_id": op_id} for row in rows])

    @contextlib.contextmanager
    def fault(self, kind: str, target: str | None, argument: str | None = None) -> Iterator[None]:
        """Record a fault that is injected and healed inside the block.

        If an exception leaves the block, the fault counts as not healed, because it is unknown whether it was healed.
        """
        row = {"fault_id": next(self._fault_ids), "kind": kind, "target": target, "argument": argument}
        injected = _Injected({**row, "inject_ns": self.now_ns()})
        self._writer.begin(injected)
        yield
        healed = {**injected.row, "heal_ns": self.now_ns()}
        self._writer.end(injected, [Rows("faults", (healed,))])

    def topic(self, name: str, properties: Mapping[str, str]) -> None:
        """Record a topic and the properties it was created with, for `run.json`."""
        self._writer.set_topic(name, properties)

    def client(self, process: int, properties: Mapping[str, str]) -> None:
        """Record a client and its properties, for `run.json`."""
        self._writer.set_client(process, properties)

    def _note_acknowledged(self, place: tuple[str, int], offsets: Sequence[int | None]) -> None:
        with self._lock:
            ends = (offset + 1 for offset in offsets if offset is not None)
            self._acknowledged_ends[place] = max(self._acknowledged_ends.get(place, 0), *ends, 0)

    def _append(self, table: str, rows: Sequence[Row]) -> None:
        known = SCHEMAS[table].names
        for row in rows:
            for name in row:
                if name not in known:
                    raise TypeError(f"{table} has no column {name}")
        self._writer.append_rows(table, rows)


def _not_invoked(op_id: int) -> HistoryError:
    return HistoryError(f"operation {op_id} was not invoked, or has completed already")


def _check_operation_columns(columns: Mapping[str, Any]) -> None:
    for name in columns:
        if name in _SET_BY_RECORDER or name not in _OPERATION_COLUMNS:
            raise TypeError(f"operations has no column {name} that a caller may set")


_OPERATION_COLUMNS: Final = frozenset(SCHEMAS["operations"].names)


def _send_block(
    row: Row, sends: Sequence[Sent], offsets: Sequence[int | None] | None, leader_epoch: int | None
) -> Block:
    count = len(sends)
    if offsets is not None and len(offsets) != count:
        raise ValueError(f"operation {row['op_id']}: {len(offsets)} offsets for {count} sends")
    values, keys, timestamps = zip(*sends, strict=True)
    columns: dict[str, Sequence[Any]] = {"seq": range(count), "value": values, "key": keys, "timestamp_ms": timestamps}
    if offsets is not None:
        columns["offset"] = offsets
    constants = {
        "op_id": row["op_id"],
        "direction": "send",
        "topic": row["topic"],
        "topic_id": row.get("topic_id"),
        "partition": row["partition"],
        "leader_epoch": leader_epoch,
        "intact": True,
    }
    return Block("records", count, columns, constants)


def _read_block(op_id: int, reads: Sequence[Read]) -> Block:
    columns = {**_columns(Read._fields, reads), "seq": range(len(reads))}
    return Block("records", len(reads), columns, {"op_id": op_id, "direction": "read"})


def _position_block(op_id: int, positions: Sequence[Position]) -> Block:
    return Block("positions", len(positions), _columns(Position._fields, positions), {"op_id": op_id})


def _columns(fields: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Sequence[Any]]:
    return dict(zip(fields, zip(*rows, strict=True), strict=True))
