"""The models by name, with the operations that each knows: for `kafkatrial check --model` and for importers.

A file has no tuples. It gives an operation's name and arguments, and its answer, as JSON or EDN; `Call.input` and
`Call.output` make of them what the model takes.
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
"""The answer of what was accepted, or was not."""


class Truth(Enum):
    """True and false as values of a file, which there are no numbers: Python's True equals 1."""

    TRUE = True
    FALSE = False

    def __repr__(self) -> str:
        return str(self.value).lower()


def _as_it_is(answer: Any) -> Any:
    return answer


def _done(answer: Any) -> bool:
    if answer not in list(Truth) and type(answer) is not bool:
        raise ValueError
    return bool(answer.value) if isinstance(answer, Truth) else bool(answer)


def _known(answer: Any) -> Any:
    if answer is None:
        raise ValueError
    return answer


def _members(answer: Any) -> frozenset[Any]:
    return frozenset(_array(answer))


def _array(answer: Any) -> tuple[Any, ...]:
    if not isinstance(answer, tuple):
        raise TypeError
    return answer


def _whole(answer: Any) -> int:
    whole_from_zero("it", answer)
    return int(answer)


def _whole_or_none(answer: Any) -> int | None:
    return None if answer is None else _whole(answer)


def _pair(answer: Any) -> tuple[Any, Any]:
    first, second = _array(answer)
    return first, second


def _id_and_epoch(answer: Any) -> tuple[int, int]:
    producer_id, epoch = _pair(answer)
    return _whole(producer_id), _whole(epoch)


def _values_and_watermark(answer: Any) -> tuple[tuple[Any, ...], int]:
    values, watermark = _pair(answer)
    return _array(values), _whole(watermark)


def _ownership(answer: Any) -> tuple[int, frozenset[Any]]:
    generation, owners = _pair(answer)
    return _whole(generation), frozenset(map(_pair, _array(owners)))


def _element_or_empty(answer: Any) -> Any:
    """Most clients of a queue answer null where there is nothing."""
    return EMPTY if answer is None else answer


def _refuse_argument(parameter: str, value: Any) -> None:
    """Raise ValueError for an argument that the parameter of that name does not take."""
    if parameter in ("offset", "producer id", "epoch", "generation"):
        whole_from_zero(parameter, value)
    elif parameter == "values" and not isinstance(value, tuple):
        raise ValueError(f"{parameter} is {brief(value)}, not an array")
    elif parameter == "text" and not isinstance(value, str):
        raise ValueError(f"{parameter} is {brief(value)}, not a text")
    elif parameter == "element" and value in (None, EMPTY):
        raise ValueError(f"{parameter} is {brief(value)}, which is the answer of an empty queue")


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of operation: its arguments by name, what it answers (empty: nothing), and how that is read."""

    name: str
    parameters: tuple[str, ...] = ()
    answer: str = ""
    read: Callable[[Any], Any] = _as_it_is

    def __str__(self) -> str:
        call = f"{self.name}({', '.join(self.parameters)})"
        return f"{call} -> {self.answer}" if self.answer else call

    def input(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The model's input. Raises ValueError for another number of arguments."""
        if len(arguments) != len(self.parameters):
            raise ValueError(f"{self.name} takes {len(self.parameters)} arguments, not {len(arguments)}: {self}")
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            try:
                _refuse_argument(parameter, argument)
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
        return (self.name, *arguments)

    def output(self, answer: Any) -> Any:
        """The model's output. Raises ValueError for an answer of another shape."""
        try:
            return self.read(answer) if self.answer else None
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} is answered by {self.answer}, not {brief(answer)}") from None


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that can be asked for by its name."""

    make: Callable[[], Model]
    what: str
    calls: tuple[Call, ...]

    def call(self, name: object) -> Call:
        """One of its operations. Raises ValueError naming those there are."""
        found = next((call for call in self.calls if call.name == name), None)
        if found is None:
            raise ValueError(f"no such operation: {brief(name)}; there are {', '.join(map(str, self.calls))}")
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
        "strings by key; a key that is not there holds the empty one",
        (
            Call("get", ("key",), 'value, of an unset key ""', _known),
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
        f"first in, first out; {EMPTY!r}, or null, is the answer where there is nothing",
        (Call("enqueue", ("element",)), Call("dequeue", (), "element", _element_or_empty)),
    ),
    "append-log": NamedModel(append_log, "a partition's log and its high watermark", _LOG),
    "linearizable-log": NamedModel(
        lambda: append_log(linearizable=True), "the same; the watermark is the end of the log", _LOG
    ),
    "committed-offset": NamedModel(
        committed_offset,
        "a group's offset of a partition; a key is whatever names one",
        (Call("commit", ("key", "offset")), Call("fetch", ("key",), "offset or null", _whole_or_none)),
    ),
    "fenced-producer": NamedModel(
        fenced_producer,
        "transactional ids; the newest epoch fences those before",
        (
            Call("init", ("transactional id",), "[producer id, epoch]", _id_and_epoch),
            Call("produce", ("transactional id", "producer id", "epoch"), DONE, _done),
        ),
    ),
    "group-membership": NamedModel(
        group_membership,
        "groups; the newest generation says who owns what",
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
"""In the order of the documentation."""


def models_text() -> str:
    """All of them, for a terminal: a line each, and one for each of their operations."""
    lines = []
    for name, model in MODELS.items():
        lines.append(f"{name}: {model.what}")
        lines += [f"    {call}" for call in model.calls]
    return "\n".join(lines)
