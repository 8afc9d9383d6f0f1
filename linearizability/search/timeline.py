"""Preparation of a history for a search: one timeline per subhistory. Invalid histories are rejected.

Operations have small numbers in the order of their invocations. The events of a timeline are numbers, too: `i` where
operation i was invoked, and `~i` where it completed. An info operation is unknown and has no completion. Two kinds of
operations are left out, because they cannot affect the verdict: failed operations, and unknown operations that are
pure.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, TypeVar

from linearizability.history.errors import HistoryError
from linearizability.model import Model, never_pipelined
from linearizability.operation import UNKNOWN, Event, EventKind, Operation, Outcome
from linearizability.search.states import OperationClass, States

STATES_KEPT_MAX = 1_000
"""Maximum number of numbered states that a timeline keeps after a search."""
Kind = TypeVar("Kind", bound=StrEnum)
INVOKE, OK, FAIL = EventKind.INVOKE, EventKind.OK, EventKind.FAIL


@dataclass(slots=True)
class Timeline:
    """One subhistory.

    :param classes: class of each operation.
    :param origins: number of each operation in the whole history.
    :param twins: for each unknown operation, the identical unknown operation before it, or -1. Identical operations are
        used in this order.
    :param optional: operations that need not take effect: the unknown operations or, in a relaxed timeline, those that
        the shrinker makes optional.
    :param known: the classes by input and output.
    """

    key: Hashable
    states: States
    events: list[int] = field(default_factory=list)
    classes: list[OperationClass] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    twins: dict[int, int] = field(default_factory=dict)
    optional: set[int] = field(default_factory=set)
    known: dict[tuple[Any, Any], OperationClass] = field(default_factory=dict)

    def release_states(self) -> None:
        """Release the states that a search has numbered, if there are many. A later search numbers them again."""
        if len(self.states.states) > STATES_KEPT_MAX:
            self.states = States(self.states.model)
            for kind in self.classes:
                kind.moves.clear()

    def relaxed(self, events: list[int], optional: set[int]) -> "Timeline":
        """Return a timeline of the same operations with other events and other optional operations."""
        return Timeline(self.key, self.states, events, self.classes, self.origins, self.twins, optional)

    def add_unknown(self, number: int) -> None:
        """Add the latest operation so far to the unknown operations."""
        kind = self.classes[number]
        self.twins[number], kind.latest_unknown = kind.latest_unknown, number
        self.optional.add(number)


@dataclass(slots=True)
class _Raw:
    """The whole history by operation number: inputs, outputs, and the order of events, encoded as in a timeline.

    `outputs` contains the ok operations, `failed` the failed ones. All other operations are unknown.
    """

    order: list[int] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: dict[int, Any] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)


class Prepared:
    """The timelines of a history, and its operations by their numbers."""

    def __init__(self, history: Iterable[Operation] | Iterable[Event], model: Model) -> None:
        self._operations: Sequence[Operation] = ()
        self._events: Sequence[Event] = ()
        rows = _in_order(history)
        if rows and isinstance(rows[0], Event):
            self._events = _validated_events(rows)
            raw = _from_events(self._events, model)
        else:
            self._operations = _validated_operations(rows)
            raw = _from_operations(self._operations, model)
        self.timelines = _split(model, raw)

    def operation(self, number: int) -> Operation:
        """Return one of `operations`, without building all of them."""
        if not self._events:
            return self._operations[number]
        begins = (index for index, event in enumerate(self._events) if event.kind is INVOKE)
        begin = next(islice(begins, number, None))
        op_id = self._events[begin].op_id
        ends = (index for index, event in enumerate(self._events) if event.kind is not INVOKE and event.op_id == op_id)
        return _operation_of(self._events, begin, next(ends, None))

    @cached_property
    def operations(self) -> Sequence[Operation]:
        """All operations by number, as given or built from their events, with those that the timelines leave out.

        If an event has no time, its index is used as its time.
        """
        return _operations_of(self._events) if self._events else self._operations


def _operations_of(events: Sequence[Event]) -> list[Operation]:
    ends = {event.op_id: index for index, event in enumerate(events) if event.kind is not INVOKE}
    return [
        _operation_of(events, index, ends.get(event.op_id))
        for index, event in enumerate(events)
        if event.kind is INVOKE
    ]


def _operation_of(events: Sequence[Event], begin: int, end: int | None) -> Operation:
    invoked, completed = events[begin], None if end is None else events[end]
    outcome = Outcome.INFO if completed is None else Outcome(completed.kind.value)
    return Operation(
        op_id=invoked.op_id,
        input=invoked.value,
        output=completed.value if completed is not None and outcome is Outcome.OK else UNKNOWN,
        invoke_ns=begin if invoked.time_ns is None else invoked.time_ns,
        complete_ns=end if completed is None or completed.time_ns is None else completed.time_ns,
        outcome=outcome,
        process=invoked.process,
    )


def _in_order(history: Iterable[Any]) -> Sequence[Any]:
    if isinstance(history, Sequence):
        return history
    try:
        return [*history]
    except TypeError:
        raise HistoryError(f"not a history: {history!r}; expected a list of operations or of events") from None


def _from_events(events: Sequence[Event], model: Model) -> _Raw:
    raw = _Raw()
    order, inputs, outputs, failed = raw.order, raw.inputs, raw.outputs, raw.failed
    without_output: set[int] = set()
    numbers: dict[Hashable, int] = {}
    processes: list[Hashable] = []
    current: dict[Hashable, int] = {}
    pipelined = None if model.pipelined is never_pipelined else model.may_overlap
    for event in events:
        op_id, kind, process = event.op_id, event.kind, event.process
        if kind is INVOKE:
            number = len(inputs)
            if numbers.setdefault(op_id, number) != number:
                raise HistoryError(f"operation {op_id!r} is invoked twice; ids must be unique")
            inputs.append(event.value)
            processes.append(process)
            order.append(number)
            if process is not None and (pipelined is None or not pipelined(event.value)):
                current[process] = number
            continue
        try:
            number = numbers[op_id]
        except KeyError:
            raise HistoryError(f"operation {op_id!r} completes but was never invoked") from None
        if number in outputs or number in without_output:
            raise HistoryError(f"operation {op_id!r} completes twice")
        if kind is OK:
            outputs[number] = event.value
            order.append(~number)
        else:
            without_output.add(number)
            if kind is FAIL:
                failed.add(number)
        invoked_by = processes[number]
        if process is not None and process != invoked_by:
            raise HistoryError(f"operation {op_id!r} is invoked by process {invoked_by!r} and completed by {process!r}")
        if invoked_by is None or current.get(invoked_by, number) == number:
            continue
        if pipelined is None or not pipelined(inputs[number]):
            later = list(numbers)[current[invoked_by]]
            raise HistoryError(_overlap(later, op_id, invoked_by))
    return raw


def _validated_events(rows: Sequence[Any]) -> Sequence[Event]:
    """Return the events, with kinds converted to `EventKind`. Raises HistoryError for an invalid event."""
    foreign = {*map(type, rows)} - {Event}
    if foreign:
        index = next(index for index, row in enumerate(rows) if type(row) in foreign)
        raise HistoryError(f"row {index}: {rows[index]!r} is not an Event; all rows must be operations, or all events")
    events: Sequence[Event] = rows
    _check_hashable(events)
    if {type(event.kind) for event in events} != {EventKind}:
        events = [replace(event, kind=_member(EventKind, event.kind, "kind", event.op_id)) for event in events]
    timed = [(event.time_ns, event) for event in events if event.time_ns is not None]
    for time_ns, event in timed:
        if not isinstance(time_ns, int):
            raise HistoryError(f"operation {event.op_id!r}: its time {time_ns!r} must be whole nanoseconds, an int")
    for (before_ns, _), (time_ns, event) in pairwise(timed):
        if time_ns < before_ns:
            raise HistoryError(
                f"operation {event.op_id!r}: its {event.kind} at {time_ns} is earlier"
                f" than the preceding event at {before_ns}"
            )
    return events


def _validated_operations(rows: Sequence[Any]) -> Sequence[Operation]:
    """Return the operations, with outcomes converted to `Outcome`. Raises HistoryError for an invalid operation."""
    foreign = {*map(type, rows)} - {Operation}
    if foreign:
        index = next(index for index, row in enumerate(rows) if type(row) in foreign)
        what = f"{rows[index]!r} is not an Operation; all rows must be operations, or all events"
        raise HistoryError(f"row {index}: {what}")
    operations: Sequence[Operation] = rows
    _check_hashable(operations)
    if {type(operation.outcome) for operation in operations} - {Outcome}:
        operations = [replace(op, outcome=_member(Outcome, op.outcome, "outcome", op.op_id)) for op in operations]
    for operation in operations:
        _check_times(operation)
    return operations


def _check_hashable(rows: Sequence[Operation] | Sequence[Event]) -> None:
    named: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("op_id", lambda row: row.op_id),
        ("process", lambda row: row.process),
    )
    for name, of in named:
        try:
            deque(map(hash, map(of, rows)), maxlen=0)
        except TypeError:
            index, value = next((index, of(row)) for index, row in enumerate(rows) if not _is_hashable(of(row)))
            raise HistoryError(f"row {index}: its {name} {value!r} is not hashable") from None


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _member(kind: type[Kind], given: Any, name: str, op_id: Hashable) -> Kind:
    """Return the member of an enum that equals a string. Raises HistoryError if there is none."""
    try:
        return kind(given)
    except ValueError:
        raise HistoryError(f"operation {op_id!r}: its {name} is {given!r}, not one of {', '.join(kind)}") from None


def _from_operations(operations: Sequence[Operation], model: Model) -> _Raw:
    raw = _Raw()
    moments: list[tuple[int, int, int]] = []
    seen: set[Hashable] = set()
    for number, operation in enumerate(operations):
        if operation.op_id in seen:
            raise HistoryError(f"operation {operation.op_id!r} occurs twice; ids must be unique")
        seen.add(operation.op_id)
        raw.inputs.append(operation.input)
        moments.append((operation.invoke_ns, 0, number))
        if operation.outcome is Outcome.FAIL:
            raw.failed.add(number)
        elif operation.outcome is Outcome.OK and operation.complete_ns is not None:
            raw.outputs[number] = operation.output
            moments.append((operation.complete_ns, 1, ~number))
    _check_overlaps(operations, model)
    moments.sort()
    raw.order.extend(signed for _, _, signed in moments)
    return raw


def _split(model: Model, raw: _Raw) -> list[Timeline]:
    """Return the timelines in the order of their first invocations, with the operations that can affect the verdict."""
    inputs, outputs, failed, partition = raw.inputs, raw.outputs, raw.failed, model.partition
    timelines: dict[Hashable, Timeline] = {}
    if partition is None:
        timeline = timelines[None] = Timeline(None, States(model))
        known = timeline.known
    homes: dict[int, Timeline] = {}
    numbers = [-1] * len(inputs)
    for signed in raw.order:
        if signed < 0:
            number = numbers[~signed]
            if number >= 0:
                (timeline if partition is None else homes[~signed]).events.append(~number)
            continue
        given, output = inputs[signed], outputs.get(signed, UNKNOWN)
        unknown = signed not in outputs
        if unknown and signed in failed:
            continue
        if partition is not None:
            key = _key(model, given)
            found = timelines.get(key)
            timeline = timelines.setdefault(key, Timeline(key, States(model))) if found is None else found
            known, homes[signed] = timeline.known, timeline
        call = (given, output)
        try:
            kind = known.get(call)
        except TypeError:  # a call that is not hashable gets its own class
            kind = _new_class(model, given, output)
        else:
            if kind is None:
                kind = known[call] = _new_class(model, given, output)
        if unknown and kind.pure:
            continue
        number = len(timeline.classes)
        numbers[signed] = number
        timeline.events.append(number)
        timeline.classes.append(kind)
        timeline.origins.append(signed)
        if unknown:
            timeline.add_unknown(number)
    return list(timelines.values())


def _new_class(model: Model, given: Any, output: Any) -> OperationClass:
    try:
        return OperationClass(given, output, bool(model.pure(given, output)), {})
    except Exception as error:
        raise model.error("(any)", given, output, error) from error


def _key(model: Model, given: Any) -> Hashable:
    try:
        key = model.partition(given)  # type: ignore[misc]
        hash(key)
    except Exception as error:
        raise model.error("(any)", given, UNKNOWN, error) from error
    return key


def _check_times(operation: Operation) -> None:
    name, begin, end = f"operation {operation.op_id!r}", operation.invoke_ns, operation.complete_ns
    if not _are_integers(begin, end):
        raise HistoryError(f"{name}: its times {begin!r} and {end!r} must be whole nanoseconds, an int")
    if end is not None and end < begin:
        raise HistoryError(f"{name}: it completes at {end}, before it was invoked at {begin}")
    if end is None and operation.outcome is Outcome.OK:
        raise HistoryError(f"{name}: it is ok but has no completion time; an operation that never returned is info")


def _are_integers(begin: object, end: object) -> bool:
    return isinstance(begin, int) and isinstance(end, int | None)


def _check_overlaps(operations: Sequence[Operation], model: Model) -> None:
    """Raise HistoryError if operations of one process overlap.

    An operation may begin at the time at which the previous one completes.
    """
    named = [op for op in operations if op.process is not None and not model.may_overlap(op.input)]
    for operation, following in _neighbours(
        sorted(named, key=lambda op: (op.invoke_ns, op.complete_ns or op.invoke_ns))
    ):
        if operation.complete_ns is not None and following.invoke_ns < operation.complete_ns:
            raise HistoryError(_overlap(following.op_id, operation.op_id, operation.process))


def _neighbours(operations: Iterable[Operation]) -> Iterable[tuple[Operation, Operation]]:
    """Yield each operation with the next one of its process."""
    last: dict[Hashable, Operation] = {}
    for operation in operations:
        if operation.process in last:
            yield last[operation.process], operation
        last[operation.process] = operation


def _overlap(later: Hashable, earlier: Hashable, process: Hashable) -> str:
    return f"operation {later!r} of process {process!r} is invoked while its operation {earlier!r} is still running"
