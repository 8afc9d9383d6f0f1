"""Model of a consumer group: each generation assigns partitions to owners, and only requests of owners are accepted.

Inputs: `("rebalance", group)` -> (generation, ownership), where ownership is a frozenset of (partition, member) pairs;
`("act", group, member, generation, partition)` -> True if a request that only an owner may send (for example an offset
commit) was accepted, False if it was rejected with a fencing error. Generations increase.

After a rebalance with an unknown response, the owners are unknown. Until another rebalance returns a generation, every
known generation is fenced.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_NOT_NEWER = Rejected("a rebalance returned a generation that is not newer than the last one")
_TWO_OWNERS = Rejected("a rebalance assigned one partition to two members")
_STALE = Rejected("a newer generation exists, so this one is fenced")
_NOT_OWNER = Rejected("another member owns the partition in this generation")
_OWNER = Rejected("the member owns the partition in the newest generation, so it is not fenced")

State = tuple[int, bool, frozenset[tuple[Any, Any]]]
"""The newest known generation, whether there may be a newer one, and its owners."""


def _rebalance(state: State, output: Any) -> State | Rejected:
    generation, _, owners = state
    if output is UNKNOWN:
        return generation, True, owners
    newer, ownership = output
    if newer <= generation:
        return _NOT_NEWER
    if len({partition for partition, _ in ownership}) < len(ownership):
        return _TWO_OWNERS
    return newer, False, frozenset(ownership)


def _step(state: State, given: tuple[Any, ...], output: Any) -> State | Rejected:
    if given[0] == "rebalance":
        return _rebalance(state, output)
    if given[0] != "act":
        raise no_such_operation(given, "rebalance", "act")
    _, _, member, generation, partition = given
    newest, superseded, owners = state
    if output is UNKNOWN:
        return state
    is_newest = generation == newest and not superseded
    is_owner = is_newest and (partition, member) in owners
    if output is False:
        return _OWNER if is_owner else state
    if is_owner:
        return state
    return _NOT_OWNER if is_newest else _STALE


def _describe_state(state: State) -> str:
    owners = ", ".join(f"{brief(partition)}: {brief(member)}" for partition, member in sorted(state[2], key=repr))
    return f"generation {state[0]}{' or newer' if state[1] else ''}, owners {{{owners}}}"


def group_membership() -> Model:
    """Return the model: each group is independent and begins without a generation."""
    return Model(
        name="group-membership",
        init=lambda: (-1, False, frozenset()),
        step=_step,
        pure=lambda given, _output: bool(given[0] == "act"),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=_describe_state,
    )
