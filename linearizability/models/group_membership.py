"""A consumer group: each generation says who owns which partition, and only its owners are served.

Inputs: `("rebalance", group)` -> (generation, ownership), ownership a frozenset of (partition, member) pairs;
`("act", group, member, generation, partition)` -> True if what the member did as an owner was accepted (an offset
commit, say), False if it was refused with a fencing error. Generations rise.

After a rebalance that nobody saw the answer of, the owners are not known: every older generation is fenced.
"""

from typing import Any

from linearizability.model import Model, Refused
from linearizability.models.call import brief, describe_call, no_such_operation
from linearizability.operation import UNKNOWN

_NOT_NEWER = Refused("a rebalance answers a generation that is not newer than the last")
_TWO_OWNERS = Refused("a rebalance gives one partition to two members")
_STALE = Refused("a newer generation exists, so this one is fenced")
_NOT_OWNER = Refused("another member owns the partition in this generation")
_OWNER = Refused("the member owns the partition in the newest generation, so it is not fenced")

State = tuple[int, bool, frozenset[tuple[Any, Any]]]
"""The newest generation seen, whether there may be a newer one, and its owners."""


def _rebalance(state: State, output: Any) -> State | Refused:
    generation, _, owners = state
    if output is UNKNOWN:
        return generation, True, owners
    newer, ownership = output
    if newer <= generation:
        return _NOT_NEWER
    if len({partition for partition, _ in ownership}) < len(ownership):
        return _TWO_OWNERS
    return newer, False, frozenset(ownership)


def _step(state: State, given: tuple[Any, ...], output: Any) -> State | Refused:
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
    """The model of one group, for every group; first without a generation."""
    return Model(
        name="group-membership",
        init=lambda: (-1, False, frozenset()),
        step=_step,
        pure=lambda given, _output: bool(given[0] == "act"),
        partition=lambda given: given[1],
        describe_operation=describe_call,
        describe_state=_describe_state,
    )
