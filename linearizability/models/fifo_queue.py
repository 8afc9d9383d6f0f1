"""Model of a queue: first in, first out.

Inputs: `("enqueue", value)` -> None; `("dequeue",)` -> the value, or `EMPTY`, which therefore cannot be enqueued.
"""

from typing import Any, Final

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

EMPTY: Final = "(empty)"
"""The result of a dequeue from an empty queue."""

_NOT_EMPTY = Rejected("the queue is not empty")
_IS_EMPTY = Rejected("the queue is empty")
_OTHER = Rejected("another value is first in the queue")


def _step(state: tuple[Any, ...], given: tuple[Any, ...], output: Any) -> Any:
    if given[0] == "enqueue":
        if given[1] == EMPTY:
            raise ValueError(f"{EMPTY} is the result for an empty queue, so it cannot be enqueued")
        return (*state, given[1])
    if given[0] != "dequeue":
        raise no_such_operation(given, "enqueue", "dequeue")
    if output == EMPTY:
        return _NOT_EMPTY if state else state
    if not state:
        return _IS_EMPTY
    return state[1:] if output is UNKNOWN or output == state[0] else _OTHER


def fifo_queue() -> Model:
    """Return the model of an initially empty queue."""
    return Model(
        name="queue",
        init=tuple,
        step=_step,
        pure=lambda given, output: bool(given[0] == "dequeue" and output == EMPTY),
        describe_operation=describe_call,
        describe_state=brief,
    )
