"""Catalogue of models by name, with their operations: for `kafkatrial check --model` and for importers.

A file has no tuples. It has an operation's name, arguments and result as JSON or EDN; `Call.input` and `Call.output`
convert them to the model's form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from linearizability.model import Model
from linearizability.models.append_log import append_log
from linearizability.models.call import brief, whole_from_zero
from linearizability.models.committed_offset import committed_offset
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.fenced_producer import fenced_producer
from linearizability.models.fifo_queue import EMPTY, fifo_queue
from linearizability.models.group_membership import group_membership
from linearizability.models.key_value import key_value
from linearizability.models.leadership_lease import leadership_lease
from linearizability.models.register import register
from linearizability.models.value_set import value_set

DONE: Final = "true or false"
"""The description of a boolean result: whether an operation was accepted, or whether a set contains a value."""


class Truth(Enum):
    """The values true and false of a file. Unlike Python's True and False, they do not equal 1 and 0."""

    TRUE = True
    FALSE = False

    def __repr__(self) -> str:
        return str(self.value).lower()


def _unchanged(result: Any) -> Any:
    return result


def _done(result: Any) -> bool:
    if result not in list(Truth) and type(result) is not bool:
        raise ValueError
    return bool(result.value) if isinstance(result, Truth) else bool(result)


def _known(result: Any) -> Any:
    if result is None:
        raise ValueError
    return result


def _members(result: Any) -> frozenset[Any]:
    return frozenset(_array(result))


def _array(result: Any) -> tuple[Any, ...]:
    if not isinstance(result, tuple):
        raise TypeError
    return result


def _whole(result: Any) -> int:
    whole_from_zero("it", result)
    return int(result)


def _whole_or_none(result: Any) -> int | None:
    return None if result is None else _whole(result)


def _pair(result: Any) -> tuple[Any, Any]:
    first, second = _array(result)
    return first, second


def _id_and_epoch(result: Any) -> tuple[int, int]:
    producer_id, epoch = _pair(result)
    return _whole(producer_id), _whole(epoch)


def _values_and_watermark(result: Any) -> tuple[tuple[Any, ...], int]:
    values, watermark = _pair(result)
    return _array(values), _whole(watermark)


def _ownership(result: Any) -> tuple[int, frozenset[Any]]:
    generation, owners = _pair(result)
    return _whole(generation), frozenset(map(_pair, _array(owners)))


def _element_or_empty(result: Any) -> Any:
    """Return the element, or `EMPTY` for null, which most clients return if the queue is empty."""
    return EMPTY if result is None else result


def _check_argument(parameter: str, value: Any) -> None:
    """Raise ValueError for an argument that the parameter of that name does not accept."""
    if parameter in ("offset", "producer id", "epoch", "generation"):
        whole_from_zero(parameter, value)
    elif parameter == "values" and not isinstance(value, tuple):
        raise ValueError(f"{parameter} is {brief(value)}, not an array")
    elif parameter == "text" and not isinstance(value, str):
        raise ValueError(f"{parameter} is {brief(value)}, not a string")
    elif parameter == "element" and value in (None, EMPTY):
        raise ValueError(f"{parameter} is {brief(value)}, which is the result for an empty queue")


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of operation."""

    name: str
    parameters: tuple[str, ...] = ()
    result: str = ""
    """The description of the result; empty if there is none."""
    read: Callable[[Any], Any] = _unchanged
    """The function that converts the result to the model's form."""

    def __str__(self) -> str:
        call = f"{self.name}({', '.join(self.parameters)})"
        return f"{call} -> {self.result}" if self.result else call

    def input(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the model's input. Raises ValueError for a wrong number of arguments or an invalid argument."""
        if len(arguments) != len(self.parameters):
            raise ValueError(f"{self.name} takes {len(self.parameters)} arguments, not {len(arguments)}: {self}")
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            try:
                _check_argument(parameter, argument)
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
        return (self.name, *arguments)

    def output(self, result: Any) -> Any:
        """Return the model's output. Raises ValueError for a result of another shape."""
        try:
            return self.read(result) if self.result else None
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} returns {self.result}, not {brief(result)}") from None


@dataclass(frozen=True, slots=True)
class NamedModel:
    """Entry of `MODELS`: the factory, the description and the operations of a model."""

    make: Callable[[], Model]
    text: str
    calls: tuple[Call, ...]

    def call(self, name: object) -> Call:
        """Return the operation with this name. Raises ValueError, with the known operations, if there is none."""
        found = next((call for call in self.calls if call.name == name), None)
        if found is None:
            raise ValueError(f"no such operation: {brief(name)}; known are {', '.join(map(str, self.calls))}")
        return found


_READ: Final = Call("read", (), "value")
_WRITE: Final = Call("write", ("value",))
_LOG: Final = (
    Call("append", ("partition", "values"), "base offset", _whole),
    Call("read", ("partition", "offset"), "[values, high watermark]", _values_and_watermark),
)

MODELS: Final[dict[str, NamedModel]] = {
    "register": NamedModel(register, "one value", (_READ, _WRITE)),
    "compare-and-set": NamedModel(
        compare_and_set,
        "one value, also written on condition",
        (_READ, _WRITE, Call("cas", ("expected", "new"), DONE, _done)),
    ),
    "key-value": NamedModel(
        key_value,
        "strings by key; an absent key holds the empty string",
        (
            Call("get", ("key",), 'value, "" for an absent key', _known),
            Call("put", ("key", "value")),
            Call("append", ("key", "text")),
        ),
    ),
    "set": NamedModel(
        value_set,
        "a set of values",
        (
            Call("add", ("value",)),
            Call("remove", ("value",)),
            Call("contains", ("value",), DONE, _done),
            Call("read", (), "values", _members),
        ),
    ),
    "queue": NamedModel(
        fifo_queue,
        f"first in, first out; {EMPTY!r}, or null, is the result for an empty queue",
        (Call("enqueue", ("element",)), Call("dequeue", (), "element", _element_or_empty)),
    ),
    "append-log": NamedModel(append_log, "a partition's log and its high watermark", _LOG),
    "linearizable-log": NamedModel(
        lambda: append_log(linearizable=True), "the same; the watermark is the end of the log", _LOG
    ),
    "committed-offset": NamedModel(
        committed_offset,
        "a group's offset of a partition; a key is any name for one",
        (Call("commit", ("key", "offset")), Call("fetch", ("key",), "offset or null", _whole_or_none)),
    ),
    "fenced-producer": NamedModel(
        fenced_producer,
        "transactional ids; the newest epoch fences the earlier ones",
        (
            Call("init", ("transactional id",), "[producer id, epoch]", _id_and_epoch),
            Call("produce", ("transactional id", "producer id", "epoch"), DONE, _done),
        ),
    ),
    "group-membership": NamedModel(
        group_membership,
        "groups; the newest generation determines the owners",
        (
            Call("rebalance", ("group",), "[generation, [[partition, member], ...]]", _ownership),
            Call("act", ("group", "member", "generation", "partition"), DONE, _done),
        ),
    ),
    "leadership-lease": NamedModel(
        leadership_lease,
        "resources; one holder at a time, each with an epoch",
        (
            Call("acquire", ("resource", "holder"), "epoch or null", _whole_or_none),
            Call("release", ("resource", "epoch")),
            Call("expire", ("resource", "epoch")),
            Call("act", ("resource", "epoch"), DONE, _done),
        ),
    ),
}
"""The models, in the order of the documentation."""


def models_text() -> str:
    """Return all models as text: one line each, and one for each operation."""
    lines = []
    for name, model in MODELS.items():
        lines.append(f"{name}: {model.text}")
        lines += [f"    {call}" for call in model.calls]
    return "\n".join(lines)
