"""Operations of clients, the input of the generic checker, and the events (invocations, completions) that form them.

An operation is a closed interval on one clock: a completion at 20 and an invocation at 20 are concurrent, since a clock
may return the same number twice. Its outcome is one of three:

* `ok`: it took effect between invocation and completion, and its output is known. A compare-and-set that failed because
  the value differed is ok, with that result as its output;
* `fail`: it did not take effect and never will. The checker leaves it out;
* `info`: unknown. It may take effect once, at any time after its invocation, or never.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Outcome(StrEnum):
    """The outcome of an operation: the column `outcome` of a history."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class EventKind(StrEnum):
    """An invocation, or a completion with its outcome."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Unknown:
    """The type of `UNKNOWN`, its only instance. It is not an enum, because hashing an enum slows down a search."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
"""The output of an operation whose outcome is info. Given it, `Model.step` returns the state after the effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call of a client.

    `op_id` is unique in a history. `process` is a client with one operation at a time (except those that
    `Model.pipelined` permits), or None. `complete_ns` is None if the call never returned; for an info operation it is
    only the time when the client gave up.
    """

    op_id: Hashable
    input: Any
    output: Any = UNKNOWN
    invoke_ns: int
    complete_ns: int | None = None
    outcome: Outcome = Outcome.OK
    process: Hashable = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a history that is given in order. `value` is the input of an invocation, the output of a completion.

    An operation whose completion is missing is info. `time_ns` may be None; if given, it must not decrease.
    """

    kind: EventKind
    op_id: Hashable
    value: Any = None
    process: Hashable = None
    time_ns: int | None = None
