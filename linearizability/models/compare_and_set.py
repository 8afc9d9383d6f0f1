"""Model of a register with three operations: read, write, and compare-and-set.

Inputs: `("read",)` -> the value; `("write", value)` -> None; `("cas", expected, value)` -> True if the register held
`expected` and now holds `value`, False if the register held another value and is unchanged.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_OTHER = Rejected("the register holds another value")
_EQUAL = Rejected("the register holds the expected value, so the compare-and-set cannot fail")


def _step(state: Any, given: tuple[Any, ...], output: Any) -> Any:
    name = given[0]
    if name == "read":
        return state if output == state or output is UNKNOWN else _OTHER
    if name == "write":
        return given[1]
    if name == "cas":
        _, expected, value = given
        if output is False:
            return _EQUAL if state == expected else state
        return value if state == expected else _OTHER  # output True or UNKNOWN
    raise no_such_operation(given, "read", "write", "cas")


def _is_pure(given: tuple[Any, ...], output: Any) -> bool:
    return given[0] == "read" or (given[0] == "cas" and output is False)


def compare_and_set(initial: Any = None) -> Model:
    """Return the model of one register that initially holds `initial`."""
    return Model(
        name="compare-and-set",
        init=lambda: initial,
        step=_step,
        pure=_is_pure,
        describe_operation=describe_call,
        describe_state=brief,
    )
