"""A leadership lease: one holder at a time, each with an epoch of its own; what an older one does is refused.

Inputs: `("acquire", resource, holder)` -> the new epoch, or None while another lease lasts; `("release", resource,
epoch)` and `("expire", resource, epoch)` -> None, and nothing happens if that lease is over; `("act", resource, epoch)`
-> True if what the holder did under its lease was accepted, False if it was refused. Epochs rise by one, from 0.
Linearizability knows no clock: when a lease may run out is told by an `expire` operation, of unknown outcome where
nobody was told.
"""

from typing import Any

from linearizability.model import Model, Refused
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_HELD = Refused("another lease lasts")
_FREE = Refused("no lease lasts, so it must be granted")
_OTHER_EPOCH = Refused("the epoch granted is not the next one")
_OVER = Refused("the lease of this epoch does not last")
_LASTS = Refused("the lease of this epoch lasts, so it must not be refused")

State = tuple[int, tuple[Any, ...]]
"""The epoch granted last, and its holder; nobody if it is over."""


def _acquire(state: State, holder: Any, output: Any) -> State | Refused:
    epoch, current = state
    if output is None:
        return state if current else _FREE
    if current:
        return _HELD
    return (epoch + 1, (holder,)) if output in (UNKNOWN, epoch + 1) else _OTHER_EPOCH


def _step(state: State, given: tuple[Any, ...], output: Any) -> State | Refused:
    f = given[0]
    if f == "acquire":
        return _acquire(state, given[2], output)
    lasts = state[0] == given[2] and bool(state[1])
    if f in ("release", "expire"):
        return (state[0], ()) if lasts else state
    if f != "act":
        raise no_such_operation(given, "acquire", "release", "expire", "act")
    if output is False:
        return _LASTS if lasts else state
    return state if lasts or output is UNKNOWN else _OVER


def leadership_lease() -> Model:
    """The model of one resource, for every resource; first nobody holds it."""
    return Model(
        name="leadership-lease",
        init=lambda: (-1, ()),
        step=_step,
        pure=lambda given, output: bool(given[0] == "act" or (given[0] == "acquire" and output is None)),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=lambda state: f"epoch {state[0]}, {f'held by {brief(state[1][0])}' if state[1] else 'free'}",
    )
