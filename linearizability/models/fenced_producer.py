"""Model of a transactional id: the newest epoch may write, and all earlier ones are fenced (KIP-98, KIP-360).

Inputs: `("init", transactional_id)` -> (producer id, epoch); `("produce", transactional_id, producer_id, epoch)` ->
True if it was accepted, False if it was rejected with a fencing error. An init returns a higher epoch of the same
producer id, or a producer id that was not used before.

After an init with an unknown response, the current pair of producer id and epoch is unknown. Until another init returns
a pair, every epoch that was returned before is fenced.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_NOT_NEWER = Rejected("an init returned an epoch that is not newer than the last one")
_USED_ID = Rejected("an init returned a producer id that was replaced before")
_FENCED = Rejected("a newer epoch was returned, so this one is fenced")
_CURRENT = Rejected("this epoch is the newest, so it is not fenced")

State = tuple[int, int, bool, frozenset[int]]
"""The last known producer id and epoch, whether there may be a newer one, and the replaced producer ids."""


def _init(state: State, output: Any) -> State | Rejected:
    producer_id, epoch, _, replaced = state
    if output is UNKNOWN:
        return producer_id, epoch, True, replaced
    new_id, new_epoch = output
    if new_id == producer_id:
        return (new_id, new_epoch, False, replaced) if new_epoch > epoch else _NOT_NEWER
    return _USED_ID if new_id in replaced else (new_id, new_epoch, False, replaced | {producer_id})


def _step(state: State, given: tuple[Any, ...], output: Any) -> State | Rejected:
    if given[0] == "init":
        return _init(state, output)
    if given[0] != "produce":
        raise no_such_operation(given, "init", "produce")
    is_current = (given[2], given[3], False) == state[:3]
    if output is False:
        return _CURRENT if is_current else state
    return state if is_current or output is UNKNOWN else _FENCED


def fenced_producer() -> Model:
    """Return the model. Each transactional id is independent of the others and begins without an epoch."""
    return Model(
        name="fenced-producer",
        init=lambda: (-1, -1, False, frozenset()),
        step=_step,
        pure=lambda given, _output: bool(given[0] == "produce"),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=lambda state: f"producer id {state[0]}, epoch {state[1]}{' or newer' if state[2] else ''}",
    )
