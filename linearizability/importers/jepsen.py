"""Importer of histories of Jepsen's Kafka workload into the public format.

A process of Jepsen is a producer and a consumer. Its calls (`send`, `poll`, `txn`) consist of micro-operations. A call
becomes one produce per send, one poll for all its polls, and, if it was a transaction, the commit or abort. The time of
a micro-operation inside the call is unknown, so its interval is that of the whole call. A successful commit may take
effect at any time in this interval. Therefore it is imported twice: with an unknown outcome, invoked when the call
began, and as ok when the call returned. (If a call polled a record that it sent, it polled before it committed. Then
the poll is imported as ending before the commit, and the commit only once.)

A key is a partition: the integer k is partition k of the topic `key`, and any other key has its own topic.

What the log does not contain:

- The properties of the clients. They are assumed to be those of Jepsen's safe preset, unless others are given.
- The start of a poll. After an `assign` with a seek to the beginning, the first poll starts at 0 and each later one
  where the previous one ended. Otherwise a poll starts at the first record that it returned.
- The times of rebalances, if no call has a `rebalance-log`. Then a rebalance may have preceded every poll of a
  subscribed process.
- The position of the consumer after a call that failed or is unknown: some clients seek back, some do not.

Jepsen counts a write as lost if some poll reached an offset above it and no poll returned it. This is correct if the
consumers begin at the log's start and together pass every offset, and if every poll returned its result. The importer
cannot check that they pass every offset. It checks that `auto.offset.reset` is `earliest` and that the log has the
result of every poll. Then the last poll that reached beyond the offset of such a write is imported as a read that
covers this offset.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from linearizability.history.errors import NotARunError
from linearizability.history.reader import History, history_of_tables
from linearizability.history.run import RunInfo
from linearizability.history.schema import ASSIGNMENT_EVENTS, SCHEMAS
from linearizability.importers.jepsen_faults import fault_rows
from linearizability.importers.jepsen_log import Call, pair_rows
from linearizability.importers.source import bad_line, shown

TOPIC: Final = "key"
SAFE_CLIENTS: Final[Mapping[str, str]] = {
    "acks": "all",
    "auto.offset.reset": "earliest",
    "enable.idempotence": "true",
    "isolation.level": "read_committed",
}
"""The properties of Jepsen's clients in a run that should have no anomalies."""

DATA_CALLS: Final = ("send", "poll", "txn")
MOVING_CALLS: Final = ("assign", "subscribe")
_INT32_MAX: Final = 2**31 - 1

Place = tuple[str, int]
"""A topic and a partition."""


def import_jepsen(path: Path, rows: Iterable[tuple[int, Any]], clients: Mapping[str, str] = SAFE_CLIENTS) -> History:
    """Convert the rows of a file to a history in memory.

    Raises HistoryError with the line, NotARunError if no call is a Kafka call.
    """
    calls, nemesis = pair_rows(path, rows)
    if not has_kafka_calls((call.line, call.invoked) for call in calls):
        what = "not of Jepsen's Kafka workload: none of its operations is a send, a poll or a txn of these"
        raise NotARunError(f"{path}: {what}; for a history of another object name its model (--model)")
    importer = _Importer(path, clients, any(call.completed and call.completed.get("rebalance-log") for call in calls))
    for call in calls:
        importer.add(call)
    run = RunInfo(
        run_id=path.name,
        target="jepsen",
        clients={process: dict(clients) for process in sorted({call.process for call in calls})},
        complete=all(call.completed is not None for call in calls),
    )
    tables = importer.tables()
    tables["faults"] = fault_rows(nemesis)
    return history_of_tables(
        path, run, {name: pa.Table.from_pylist(own, schema=SCHEMAS[name]) for name, own in tables.items()}
    )


def has_kafka_calls(rows: Iterable[tuple[int, Any]]) -> bool:
    """Whether rows may belong to the Kafka workload: at least one is a `send`, a `poll`, or a `txn` of these."""
    return any(isinstance(row, Mapping) and _is_kafka_call(row) for _, row in rows)


def _is_kafka_call(row: Mapping[str, Any]) -> bool:
    names = [row.get("f")]
    if names == ["txn"]:
        names = [part for one in _sequence(row.get("value")) for part in _sequence(one)[:1]]
    return any(name in ("send", "poll") for name in names)


@dataclass(slots=True)
class _Operation:
    """A row of `operations` before its op_id is assigned, with its rows of `records` and `positions`."""

    invoke_ns: int
    order: int
    row: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    positions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Sent:
    place: Place
    key: Any
    value: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class _Read:
    place: Place
    offset: int
    value: int


class _Importer:
    def __init__(self, path: Path, clients: Mapping[str, str], logs_rebalances: bool) -> None:
        self._path = path
        self._idempotent = clients.get("enable.idempotence") == "true"
        self._from_start = clients.get("auto.offset.reset") == "earliest"
        self._logs_rebalances = logs_rebalances
        self._operations: list[_Operation] = []
        self._assignments: list[dict[str, Any]] = []
        self._sent: dict[tuple[Place, int], int] = {}
        """The line of each send, by partition and value."""
        self._acknowledged: dict[Place, set[int]] = defaultdict(set)
        self._returned: dict[Place, set[int]] = defaultdict(set)
        self._polls: dict[Place, list[tuple[int, int, _Operation]]] = defaultdict(list)
        """Per partition, its polls that are ok: position of the completion in the log, highest offset, operation."""
        self._polls_without_result = False
        self._subscribed: set[int] = set()
        self._positions: dict[int, dict[Place, int]] = {}
        """The known positions of each process.

        They are known from an `assign` with a seek to the beginning until the next `assign` or `subscribe`, until a
        call that polls is not ok, or until the partition is in a `rebalance-log`.
        """

    def add(self, call: Call) -> None:
        """Add one call; calls are added in the order of invocation."""
        if call.f in DATA_CALLS:
            self._add_data(call)
            return
        self._operation(call, call.f, call.outcome)
        if call.f in MOVING_CALLS:
            self._subscribed.discard(call.process)
            self._positions.pop(call.process, None)
            if call.f == "subscribe":
                self._subscribed.add(call.process)
            elif call.outcome == "ok" and call.invoked.get("seek-to-beginning?"):
                self._positions[call.process] = dict.fromkeys(self._places(call, call.invoked.get("value")), 0)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of all tables but `faults`."""
        self._cover_unreturned_offsets()
        tables: dict[str, list[dict[str, Any]]] = {"operations": [], "records": [], "positions": []}
        for op_id, operation in enumerate(sorted(self._operations, key=lambda own: (own.invoke_ns, own.order))):
            tables["operations"].append({"op_id": op_id, **operation.row})
            tables["records"] += ({"op_id": op_id, **row} for row in operation.records)
            tables["positions"] += ({"op_id": op_id, **row} for row in operation.positions)
        return {**tables, "assignments": self._assignments}

    def _operation(
        self, call: Call, f: str, outcome: str, columns: Mapping[str, Any] | None = None, *, at_end: bool = False
    ) -> _Operation:
        invoke_ns = call.complete_ns if at_end and call.complete_ns is not None else call.invoke_ns
        row = {
            "process": call.process,
            "f": f,
            "invoke_ns": invoke_ns,
            "complete_ns": call.complete_ns,
            "outcome": outcome,
            **(columns or {}),
        }
        operation = _Operation(invoke_ns, call.end if at_end else call.begin, row)
        self._operations.append(operation)
        return operation

    def _add_data(self, call: Call) -> None:
        sends, reads, polls = self._micro_operations(call)
        in_transaction = call.f == "txn" or (bool(sends) and len(sends) + polls > 1)
        own = {"txn_seq": call.begin} if in_transaction else {}
        sent_values = {(sent.place, sent.value) for sent in sends}
        reads_own_send = bool(sent_values & {(read.place, read.value) for read in reads})
        if in_transaction and (call.outcome == "info" or (call.outcome == "ok" and not reads_own_send)):
            self._operation(call, "commit_txn", "info", own).row["complete_ns"] = None
        for sent in sends:
            self._add_send(call, sent, own)
        if polls:
            poll = self._add_poll(call, reads, own)
            if reads_own_send and call.outcome == "ok":
                poll.row["complete_ns"] = max(call.invoke_ns, (call.complete_ns or 0) - 1)
        if in_transaction and call.outcome != "info":
            self._operation(call, "commit_txn" if call.outcome == "ok" else "abort_txn", "ok", own, at_end=True)
        if reads and call.outcome != "ok" and call.complete_ns is not None:
            self._operation(call, "seek", "info", at_end=True)

    def _add_send(self, call: Call, sent: _Sent, own: Mapping[str, Any]) -> None:
        line = self._sent.get((sent.place, sent.value))
        if line is not None:
            what = f"sends {sent.value} to key {sent.key}, as line {line} does; a value is sent to a key only once"
            raise bad_line(self._path, call.line, what)
        self._sent[sent.place, sent.value] = call.line
        outcome = call.outcome
        if own and outcome != "ok":  # a record may be acknowledged whatever the outcome of its transaction
            outcome = "info" if sent.offset is None else "ok"
        if sent.offset is not None and call.outcome != "fail":
            self._acknowledged[sent.place].add(sent.offset)
        idempotent = {"producer_id": -1} if self._idempotent else {}
        operation = self._operation(call, "produce", outcome, {**idempotent, **own})
        operation.records.append(_record(0, "send", sent.place, sent.offset, sent.value))

    def _add_poll(self, call: Call, reads: list[_Read], own: Mapping[str, Any]) -> _Operation:
        operation = self._operation(call, "poll", call.outcome, own)
        self._polls_without_result |= call.outcome != "ok" and not reads
        ranges: dict[Place, tuple[int, int]] = {}
        for seq, read in enumerate(reads):
            operation.records.append(_record(seq, "read", read.place, read.offset, read.value))
            self._returned[read.place].add(read.offset)
            ranges[read.place] = ranges.get(read.place, (read.offset, 0))[0], read.offset
        if call.outcome != "ok":
            self._positions.pop(call.process, None)
        positions = self._positions.get(call.process, {})
        for place, (first, last) in ranges.items():
            before = min(positions.get(place, first), first)
            if place in positions:
                positions[place] = last + 1
            if call.process in self._subscribed and not self._logs_rebalances:
                operation.positions.append(_position(place, before, before, "assign"))
            operation.positions.append(_position(place, before, last + 1, "read"))
            if call.outcome == "ok":
                highest = max(read.offset for read in reads if read.place == place)
                self._polls[place].append((call.end, highest, operation))
        for entry in _sequence(self._completion(call).get("rebalance-log")):
            self._add_rebalance(call, entry)
        return operation

    def _add_rebalance(self, call: Call, entry: Any) -> None:
        if not isinstance(entry, Mapping):
            raise bad_line(self._path, call.last_line, f"an entry of the rebalance-log is {shown(entry)}, not a map")
        event = entry.get("type")
        for topic, partition in self._places(call, entry.get("keys")):
            self._positions.get(call.process, {}).pop((topic, partition), None)
            row = {"process": call.process, "topic": topic, "partition": partition}
            at_ns = call.invoke_ns if call.complete_ns is None else call.complete_ns
            event = event if event in ASSIGNMENT_EVENTS else "revoked"
            self._assignments.append({"at_ns": at_ns, "event": event, **row})

    def _cover_unreturned_offsets(self) -> None:
        """Add positions that cover the acknowledged offsets that no poll returned.

        Each is a position of the last poll that reached beyond the offset. Without such a poll, the offset stays
        uncovered.
        """
        if self._polls_without_result or not self._from_start:
            return
        for place, acknowledged in self._acknowledged.items():
            reached: list[int] = []
            pollers: list[_Operation] = []
            for _, highest, operation in sorted(self._polls[place], key=lambda poll: poll[0], reverse=True):
                if not reached or highest > reached[-1]:
                    reached.append(highest)
                    pollers.append(operation)
            for offset in sorted(acknowledged - self._returned[place]):
                later = bisect_right(reached, offset)
                if later < len(reached):
                    pollers[later].positions.append(_position(place, offset, offset + 1, "read"))

    def _micro_operations(self, call: Call) -> tuple[list[_Sent], list[_Read], int]:
        """Return what a call sent, what it read, and the number of its polls."""
        sends: list[_Sent] = []
        reads: list[_Read] = []
        polls = 0
        invoked, completed = _sequence(call.invoked.get("value")), _sequence(self._completion(call).get("value"))
        if len(invoked) != len(completed):
            raise bad_line(
                self._path, call.last_line, f"invokes {len(invoked)} micro-operations and completes {len(completed)}"
            )
        for before, after in zip(invoked, completed, strict=True):
            parts = _sequence(after)
            if len(parts) == 3 and parts[0] == "send" and _sequence(before)[:1] == ["send"]:
                sends.append(self._send(call, _sequence(before), parts))
            elif parts and parts[0] == "poll" and len(parts) <= 2:
                polls += 1
                reads += self._reads(call, parts[1] if len(parts) == 2 else None)
            else:
                raise bad_line(
                    self._path, call.last_line, f"not a micro-operation [send key value] or [poll]: {shown(after)}"
                )
        return sends, reads, polls

    def _send(self, call: Call, before: list[Any], after: list[Any]) -> _Sent:
        key, sent, result = after[1], before[2] if len(before) == 3 else None, after[2]
        offset, value = result if isinstance(result, list | tuple) and len(result) == 2 else (None, result)
        if before[1:2] != [key] or sent != value:
            raise bad_line(self._path, call.last_line, f"completes {shown(after)}, but invoked {shown(before)}")
        if offset is not None:
            offset = self._number(call, "offset", offset, 0)
        return _Sent(_place(key), key, self._number(call, "value", value, -(2**63)), offset)

    def _reads(self, call: Call, found: Any) -> Iterator[_Read]:
        if found is not None and not isinstance(found, Mapping):
            raise bad_line(
                self._path, call.last_line, f"a poll returns a map from keys to [offset value], not {shown(found)}"
            )
        for key, pairs in (found or {}).items():
            for pair in _sequence(pairs):
                if not isinstance(pair, list | tuple) or len(pair) != 2:
                    raise bad_line(self._path, call.last_line, f"a poll returns {shown(pair)}, not [offset value]")
                offset, value = pair
                offset = self._number(call, "offset", offset, 0)
                yield _Read(_place(key), offset, self._number(call, "value", value, -(2**63)))

    def _number(self, call: Call, name: str, number: Any, lowest: int) -> int:
        if type(number) is not int or not lowest <= number < 2**63:
            wanted = f"an integer of 64 bits{'' if lowest else ' from 0'}"
            raise bad_line(self._path, call.last_line, f"{name} is {shown(number)}, not {wanted}")
        return number

    def _places(self, call: Call, keys: Any) -> list[Place]:
        if keys is not None and not isinstance(keys, list | tuple):
            raise bad_line(self._path, call.line, f"{call.f} has the value {shown(keys)}, not a list of keys")
        return [_place(key) for key in _sequence(keys)]

    @staticmethod
    def _completion(call: Call) -> Mapping[str, Any]:
        """Return the completion; if it is missing or has no value, the invocation."""
        completed = call.completed
        return call.invoked if completed is None or completed.get("value") is None else completed


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _place(key: Any) -> Place:
    """Return the partition of a key. In JSON the keys of maps are strings."""
    if isinstance(key, str) and key.isdecimal():
        key = int(key)
    return (TOPIC, key) if type(key) is int and 0 <= key <= _INT32_MAX else (f"{TOPIC}-{key}", 0)


def _record(seq: int, direction: str, place: Place, offset: int | None, value: int) -> dict[str, Any]:
    row = {"seq": seq, "direction": direction, "topic": place[0], "partition": place[1]}
    return {**row, "offset": offset, "value": value, "intact": True}


def _position(place: Place, before: int, after: int, cause: str) -> dict[str, Any]:
    return {"topic": place[0], "partition": place[1], "before": before, "after": after, "cause": cause}
