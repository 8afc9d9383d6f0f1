"""Importer of histories of any object, for a named model: operations or events as NDJSON, and Jepsen's log.

An input is an array that begins with the operation's name. Arrays are read as tuples, which JSON does not have:

    {"op_id": 1, "process": "a", "input": ["write", 3], "invoke_ns": 0, "complete_ns": 10}
    {"op_id": 2, "process": "b", "input": ["read"], "output": 3, "invoke_ns": 5, "complete_ns": 15, "outcome": "ok"}

or events, in their order:

    {"kind": "invoke", "op_id": 1, "process": "a", "value": ["write", 3], "time_ns": 0}
    {"kind": "ok", "op_id": 1, "process": "a", "time_ns": 10}

The objects have the members of `Operation` or `Event`, with the same defaults.

In a log of Jepsen `f` is the operation's name and `value` its argument, or a vector of its arguments; in a completion
with type ok, `value` is the result. A compare-and-set with type ok wrote its value; one with type fail has no effect.
In a log of independent keys each `value` is a pair of a key and the value. An operation without an argument has nil as
value: `[0 nil]`. By such a pair the importer recognises a log of independent keys. Its inputs are those of
`models.each_key`.
"""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from linearizability.importers.jepsen_log import Call as LoggedCall
from linearizability.importers.jepsen_log import pair_rows
from linearizability.importers.source import bad_line, json_of, read_lines, shown
from linearizability.model import Model
from linearizability.models.catalogue import DONE, Call, NamedModel, Truth
from linearizability.models.each_key import each_key
from linearizability.operation import UNKNOWN, Event, EventKind, Operation, Outcome

_OPERATION: Final = frozenset({"op_id", "process", "input", "output", "invoke_ns", "complete_ns", "outcome"})
_EVENT: Final = frozenset({"op_id", "process", "kind", "value", "time_ns"})
DEPTH_MAX: Final = 50
"""The maximum nesting of arrays."""
Row = Mapping[str, Any]
OwnLines = Mapping[Hashable, Sequence[int]]
"""The line numbers of each operation, by op_id."""


def read_operations(path: Path, model: NamedModel) -> tuple[list[Operation] | list[Event], OwnLines]:
    """Read a file of operations or of events, with their lines. Raises HistoryError with the line."""
    rows = [(line, _row(path, line, text)) for line, text in read_lines(path) if text.strip()]
    history: list[Any]
    if rows and "kind" in rows[0][1]:
        history = _events(path, rows, model)
    else:
        history = [_parsed(path, line, _operation, row, model) for line, row in rows]
    lines: dict[Hashable, list[int]] = {}
    for (line, _), one in zip(rows, history, strict=True):
        lines.setdefault(one.op_id, []).append(line)
    return history, lines


def read_jepsen_calls(path: Path, rows: Iterable[tuple[int, Any]], model: NamedModel) -> tuple[list[Event], Model]:
    """Return the calls of all clients in a log of Jepsen, numbered by invocation, and the model that judges them.

    Raises HistoryError with the line.
    """
    calls, _ = pair_rows(path, rows)
    has_keys = _has_keys(path, calls, model)
    moments: list[tuple[int, Event]] = []
    for number, call in enumerate(calls):
        begin, end = _parsed(path, call.line, _logged, call, model, number, has_keys)
        moments.append((call.begin, begin))
        if end is not None:
            moments.append((call.end, end))
    events = [event for _, event in sorted(moments, key=lambda moment: moment[0])]
    return events, each_key(model.make()) if has_keys else model.make()


def as_calls_of(events: Sequence[Event], model: NamedModel) -> list[Event]:
    """Convert events of another log, such as porcupine's, to a model's inputs and outputs.

    Raises ValueError if the model has no such operation, argument or result.
    """
    calls: dict[Hashable, Call] = {}
    taken = []
    for event in events:
        value = event.value
        if event.kind is EventKind.INVOKE:
            calls[event.op_id] = model.call(value[0])
            value = calls[event.op_id].input(value[1:])
        elif event.kind is EventKind.OK:
            value = calls[event.op_id].output(value)
        taken.append(replace(event, value=value))
    return taken


def _parsed(path: Path, line: int, read: Callable[..., Any], *what: Any) -> Any:
    try:
        return read(*what)
    except ValueError as error:
        raise bad_line(path, line, str(error)) from None


def _row(path: Path, line: int, text: str) -> Row:
    row = json_of(path, line, text)
    if not isinstance(row, dict):
        raise bad_line(path, line, f"not an operation: {shown(text)}")
    return row


def _operation(row: Row, model: NamedModel) -> Operation:
    _check_members(row, _OPERATION, ("op_id", "input", "invoke_ns"))
    outcome = _one_of(Outcome, row.get("outcome", Outcome.OK), "outcome")
    call, given = _input(row["input"], model)
    return Operation(
        op_id=_op_id(row),
        input=given,
        output=call.output(_value(row.get("output"))) if outcome is Outcome.OK else UNKNOWN,
        invoke_ns=_time_ns(row, "invoke_ns"),
        complete_ns=None if row.get("complete_ns") is None else _time_ns(row, "complete_ns"),
        outcome=outcome,
        process=_process(row),
    )


def _events(path: Path, rows: Sequence[tuple[int, Row]], model: NamedModel) -> list[Event]:
    calls: dict[Any, Call] = {}
    return [_parsed(path, line, _event, row, model, calls) for line, row in rows]


def _event(row: Row, model: NamedModel, calls: dict[Any, Call]) -> Event:
    _check_members(row, _EVENT, ("op_id", "kind"))
    kind, op_id = _one_of(EventKind, row["kind"], "kind"), _op_id(row)
    value: Any = None
    if kind is EventKind.INVOKE:
        calls[op_id], value = _input(row.get("value"), model)
    elif kind is EventKind.OK and op_id in calls:
        value = calls[op_id].output(_value(row.get("value")))
    time_ns = None if row.get("time_ns") is None else _time_ns(row, "time_ns")
    return Event(kind=kind, op_id=op_id, value=value, process=_process(row), time_ns=time_ns)


def _check_members(row: Row, known: frozenset[str], needed: Iterable[str]) -> None:
    unknown = min(row.keys() - known, default=None)
    if unknown is not None:
        raise ValueError(f"{shown(unknown)!r} is not one of {', '.join(sorted(known))}")
    missing = next((name for name in needed if row.get(name) is None), None)
    if missing is not None:
        raise ValueError(f"{missing} is missing")


def _one_of(kind: type[Outcome] | type[EventKind], text: object, name: str) -> Any:
    found = next((one for one in kind if one == text), None)
    if found is None:
        raise ValueError(f"{name} is {shown(text)}, not one of {', '.join(kind)}")
    return found


def _op_id(row: Row) -> int | str:
    op_id = row["op_id"]
    if type(op_id) not in (int, str):
        raise ValueError(f"op_id is {shown(json.dumps(op_id))}, neither a whole number nor a string")
    return _text(op_id) if isinstance(op_id, str) else op_id


def _process(row: Row) -> int | str | None:
    process = row.get("process")
    if process is not None and type(process) not in (int, str):
        raise ValueError(f"process is {shown(json.dumps(process))}, neither a whole number nor a string")
    return _text(process) if isinstance(process, str) else process


def _time_ns(row: Row, name: str) -> int:
    time_ns = row[name]
    if type(time_ns) is not int:
        raise ValueError(f"{name} is {shown(json.dumps(time_ns))}, not whole nanoseconds")
    return time_ns


def _input(given: object, model: NamedModel) -> tuple[Call, tuple[Any, ...]]:
    if not isinstance(given, list) or not given:
        raise ValueError(f"an input is an array that begins with the operation's name, not {shown(json.dumps(given))}")
    call = model.call(given[0])
    return call, call.input(_value(given[1:]))


def _value(given: Any, depth: int = 0) -> Any:
    """Convert arrays to tuples, and true and false to `Truth`, so that values are comparable and hashable."""
    if isinstance(given, dict):
        raise ValueError(f"{shown(json.dumps(given))} is an object; a model takes arrays and plain values")
    if isinstance(given, str):
        return _text(given)
    if isinstance(given, bool):
        return Truth(given)
    if not isinstance(given, list | tuple):
        return _number(given) if isinstance(given, float) else given
    if depth == DEPTH_MAX:
        raise ValueError(f"arrays are nested more than {DEPTH_MAX} deep")
    return tuple([_value(one, depth + 1) for one in given])


def _number(given: float) -> float:
    if math.isnan(given):
        raise ValueError("NaN is no value, since it does not equal itself")
    return given


def _text(given: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in given):
        raise ValueError(f"{json.dumps(given)} is not a valid string: it has half of a surrogate pair")
    return given


def _has_keys(path: Path, calls: Sequence[LoggedCall], model: NamedModel) -> bool:
    """Whether a log is one of independent keys. Raises HistoryError if that cannot be decided."""
    inputs = [
        _parsed(path, call.line, lambda call: (model.call(call.f), _value(call.invoked.get("value"))), call)
        for call in calls
    ]
    if any(not kind.parameters and _is_pair(value) and value[1] is None for kind, value in inputs):
        return True
    all_pairs = all(_is_pair(value) for _, value in inputs)
    has_reads = any(not kind.parameters for kind in model.calls)
    for call, (kind, value) in zip(calls, inputs, strict=True):
        if len(kind.parameters) == 1 and kind.result and _is_pair(value) and value[1] is None:
            what = f"{kind} is invoked with {shown(value)}, as in a log of independent keys, but takes the key itself"
            raise bad_line(path, call.line, what)
        if all_pairs and has_reads and len(kind.parameters) == 2 and _is_pair(value[1]) and not _is_pair(value[0]):
            what = f"{kind} with {shown(value)} may be of one object or of independent keys; no read shows which"
            raise bad_line(path, call.line, what)
    return False


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _split_key(call: LoggedCall, value: Any, key: Any = UNKNOWN) -> tuple[Any, Any]:
    """Split a pair into its key and its value.

    Raises ValueError for a value that is no pair and, if `key` is given, for a pair with another key.
    """
    if not _is_pair(value):
        raise ValueError(f"{call.f} has the value {shown(value)}, no pair of a key and a value as in other calls")
    if key is not UNKNOWN and value[0] != key:
        raise ValueError(f"{call.f} is invoked for key {shown(key)}, but completes for key {shown(value[0])}")
    return value[0], value[1]


def _logged(call: LoggedCall, model: NamedModel, number: int, has_keys: bool) -> tuple[Event, Event | None]:
    """Return the events of a call: its invocation, and its completion (None if it has none)."""
    kind, invoked = model.call(call.f), _value(call.invoked.get("value"))
    key, invoked = _split_key(call, invoked) if has_keys else (None, invoked)
    arguments = invoked if len(kind.parameters) > 1 and isinstance(invoked, tuple) else (invoked,)
    given = kind.input(arguments if kind.parameters else ())
    if has_keys:
        given = (key, given)
    begin = Event(kind=EventKind.INVOKE, op_id=number, value=given, process=call.process, time_ns=call.invoke_ns)
    if call.completed is None:
        return begin, None
    value: Any = None
    if call.outcome == Outcome.OK:
        result = _value(call.completed.get("value"))
        if has_keys and kind.result:
            _, result = _split_key(call, result, key)
        value = kind.output(True if kind.result == DONE and result == invoked else result)
    end = EventKind(call.outcome)
    return begin, Event(kind=end, op_id=number, value=value, process=call.process, time_ns=call.complete_ns)
