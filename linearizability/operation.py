"""What a client did, as the generic checker reads it: operations, or the invocations and completions they are made of.

An operation is a closed interval on one clock: a completion at 20 and an invocation at 20 are concurrent, since a clock
may answer the same number twice. Its outcome is one of three:

* `ok`: it took effect between invocation and completion, and its output is known. A compare-and-set that answered "the
  value was another" is ok, with that answer as its output;
* `fail`: it certainly did not and will not take effect. The checker leaves it out;
* `info`: nobody knows. It may take effect once, at any time after its invocation, or never; it is never forced.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Outcome(StrEnum):
    """How an operation ended: the column `outcome` of a history."""

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
    """The type of `UNKNOWN`, of which there is only that one: not an enum, whose hash takes a search's time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
"""The output of an operation whose outcome is info. A model then gives the effect and asks nothing of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call of a client.

    `op_id` is unique in a history. `process` is a client that does one thing at a time, None if that is not so.
    `complete_ns` is None if it never returned; for an info operation it says when the client gave up, no more.
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

    An operation whose completion is missing is info. `time_ns` may be None; where it is given it must not go back.
    """

    kind: EventKind
    op_id: Hashable
    value: Any = None
    process: Hashable = None
    time_ns: int | None = None
