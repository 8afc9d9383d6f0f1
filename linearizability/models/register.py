"""Model of a register: one value that is written and read.

Inputs: `("read",)` -> the value; `("write", value)` -> None. If no value is written twice, `search.zones` can judge a
history of any length without a search.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_OTHER = Rejected("the register holds another value")


def _step(state: Any, given: tuple[Any, ...], output: Any) -> Any:
    if given[0] == "read":
        return state if output == state or output is UNKNOWN else _OTHER
    if given[0] == "write":
        return given[1]
    raise no_such_operation(given, "read", "write")


def register(initial: Any = None) -> Model:
    """Return the model of one register that initially holds `initial`."""
    return Model(
        name="register",
        init=lambda: initial,
        step=_step,
        pure=lambda given, _output: bool(given[0] == "read"),
        describe_operation=describe_call,
        describe_state=brief,
    )
