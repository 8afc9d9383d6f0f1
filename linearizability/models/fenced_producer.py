"""A transactional id: whoever is handed the newest epoch writes, and all before are fenced (KIP-98, KIP-360).

Inputs: `("init", transactional_id)` -> (producer id, epoch); `("produce", transactional_id, producer_id, epoch)` ->
True if it was accepted, False if it was answered with a fencing error. An init hands out a higher epoch of the same
producer id, or a producer id that was not used before.

Of an init that nobody saw the answer of, the pair is not known: until the next one, every epoch handed out is fenced.
"""

from typing import Any

from linearizability.model import Model, Refused
from linearizability.models.call import describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_NOT_NEWER = Refused("an init hands out an epoch that is not newer than the last")
_USED_ID = Refused("an init hands out a producer id that was replaced before")
_FENCED = Refused("a newer epoch was handed out, so this one is fenced")
_CURRENT = Refused("this epoch is the newest, so it is not fenced")

State = tuple[int, int, bool, frozenset[int]]
"""Producer id and epoch handed out last, whether a later one was that nobody saw, and producer ids replaced."""


def _init(state: State, output: Any) -> State | Refused:
    producer_id, epoch, _, replaced = state
    if output is UNKNOWN:
        return producer_id, epoch, True, replaced
    new_id, new_epoch = output
    if new_id == producer_id:
        return (new_id, new_epoch, False, replaced) if new_epoch > epoch else _NOT_NEWER
    return _USED_ID if new_id in replaced else (new_id, new_epoch, False, replaced | {producer_id})


def _step(state: State, given: tuple[Any, ...], output: Any) -> State | Refused:
    if given[0] == "init":
        return _init(state, output)
    if given[0] != "produce":
        raise no_such_operation(given, "init", "produce")
    is_current = (given[2], given[3], False) == state[:3]
    if output is False:
        return _CURRENT if is_current else state
    return state if is_current or output is UNKNOWN else _FENCED


def fenced_producer() -> Model:
    """The model of one transactional id, for every id; first nothing was handed out."""
    return Model(
        name="fenced-producer",
        init=lambda: (-1, -1, False, frozenset()),
        step=_step,
        pure=lambda given, _output: bool(given[0] == "produce"),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=lambda state: f"producer id {state[0]}, epoch {state[1]}{' or newer' if state[2] else ''}",
    )
