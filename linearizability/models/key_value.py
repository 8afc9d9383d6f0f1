"""Model of a store of strings by key, with append. Keys are independent: each has its own subhistory and state.

Inputs: `("get", key)` -> the value, "" if the key was never written; `("put", key, value)` and `("append", key, value)`
-> None. The state is the value of the key.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_OTHER = Rejected("the key holds another value")


def _step(state: str, given: tuple[str, ...], output: Any) -> Any:
    f = given[0]
    if f == "get":
        return state if output == state or output is UNKNOWN else _OTHER
    if f == "append":
        return state + given[2]
    if f == "put":
        return given[2]
    raise no_such_operation(given, "get", "put", "append")


def key_value() -> Model:
    """Return the model. Each key is independent of the others and initially holds the empty string."""
    return Model(
        name="key-value",
        init=str,
        step=_step,
        pure=lambda given, _output: bool(given[0] == "get"),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=brief,
    )
