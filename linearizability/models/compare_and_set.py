"""A register that can be read, written, and written on condition that it holds a value.

Inputs: `("read",)` -> the value; `("write", value)` -> None; `("cas", expected, value)` -> True if it was written,
False if the register held another value.
"""

from typing import Any

from linearizability.model import Model, Refused
from linearizability.operation import UNKNOWN

_OTHER = Refused("the register holds another value")
_EQUAL = Refused("the register holds the expected value, so it must be written")


def _step(state: Any, given: tuple[Any, ...], output: Any) -> Any:
    f = given[0]
    if f == "read":
        return state if output in (UNKNOWN, state) else _OTHER
    if f == "write":
        return given[1]
    if f == "cas":
        if state != given[1]:
            return _OTHER if output is True or output is UNKNOWN else state
        return _EQUAL if output is False else given[2]
    raise ValueError(f"no such operation: {f!r}; there are read, write and cas")


def _pure(given: tuple[Any, ...], output: Any) -> bool:
    return given[0] == "read" or (given[0] == "cas" and output is False)


def _describe(given: tuple[Any, ...], output: Any) -> str:
    call = f"{given[0]}({', '.join(map(repr, given[1:]))})"
    return call if output is None else f"{call} -> {output!r}"


def compare_and_set(initial: Any = None) -> Model:
    """The model of one register that first holds `initial`."""
    return Model(
        name="compare-and-set", init=lambda: initial, step=_step, pure=_pure, describe_operation=_describe
    )
