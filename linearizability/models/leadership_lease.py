"""Model of a leadership lease: one holder at a time, each with its own epoch; requests of older holders are rejected.

Inputs: `("acquire", resource, holder)` -> the new epoch, or None while another lease lasts; `("release", resource,
epoch)` and `("expire", resource, epoch)` -> None, without effect if that lease is over; `("act", resource, epoch)` ->
True if the holder's request under its lease was accepted, False if it was rejected. Epochs increase by one, from 0.
Linearizability has no clock: an `expire` operation marks the possible end of a lease; its outcome is unknown if no
client observed it.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_HELD = Rejected("another lease lasts")
_FREE = Rejected("no lease lasts, so it must be granted")
_OTHER_EPOCH = Rejected("the epoch granted is not the next one")
_OVER = Rejected("the lease of this epoch does not last")
_LASTS = Rejected("the lease of this epoch lasts, so it must not be rejected")

State = tuple[int, tuple[Any, ...]]
"""The epoch granted last, and its holder; empty if the lease is over."""


def _acquire(state: State, holder: Any, output: Any) -> State | Rejected:
    epoch, current = state
    if output is None:
        return state if current else _FREE
    if current:
        return _HELD
    return (epoch + 1, (holder,)) if output in (UNKNOWN, epoch + 1) else _OTHER_EPOCH


def _step(state: State, given: tuple[Any, ...], output: Any) -> State | Rejected:
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
    """Return the model. Each resource is independent of the others and initially has no holder."""
    return Model(
        name="leadership-lease",
        init=lambda: (-1, ()),
        step=_step,
        pure=lambda given, output: bool(given[0] == "act" or (given[0] == "acquire" and output is None)),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=lambda state: f"epoch {state[0]}, {f'held by {brief(state[1][0])}' if state[1] else 'free'}",
    )
