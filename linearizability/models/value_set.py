"""Model of a set of values.

Inputs: `("add", value)` and `("remove", value)` -> None; `("contains", value)` -> bool; `("read",)` -> all values, as a
frozenset.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import SHOWN_MAX, brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_OTHER = Rejected("the set holds other values")


def _step(state: frozenset[Any], given: tuple[Any, ...], output: Any) -> Any:
    f = given[0]
    if f == "add":
        return state | {given[1]}
    if f == "remove":
        return state - {given[1]}
    if f == "contains":
        return state if output is UNKNOWN or output == (given[1] in state) else _OTHER
    if f == "read":
        return state if output is UNKNOWN or output == state else _OTHER
    raise no_such_operation(given, "add", "remove", "contains", "read")


def _describe_state(state: frozenset[Any]) -> str:
    members = ", ".join(sorted(map(brief, state)))
    return "{" + (members if len(members) <= SHOWN_MAX else members[:SHOWN_MAX] + "…") + "}"


def value_set() -> Model:
    """Return the model of an initially empty set."""
    return Model(
        name="set",
        init=frozenset,
        step=_step,
        pure=lambda given, _output: given[0] in ("contains", "read"),
        describe_operation=describe_call,
        describe_state=_describe_state,
    )
