"""Hypothesis strategies for what faults are made of: when, where, for how long; one alone, or several in a story."""

from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.simulation.choice import chosen
from chaos.simulation.shape import Shape
from fixtures.faults import (
    AnyFault,
    Keeps,
    Listener,
    Node,
    Role,
    Timed,
)

Group = tuple[Timed, ...]
"""Faults whose `at_ms` is since the group's begin."""


@cache
def gaps() -> SearchStrategy[int]:
    """From one fault to the next."""
    return chosen(st.integers(0, 60), st.integers(0, 1_000), st.integers(0, 6_000))


@cache
def durations() -> SearchStrategy[int]:
    """Of a fault: within a request's time, within the lag that an ISR forgives, beyond a session."""
    return chosen(st.integers(50, 400), st.integers(200, 3_000), st.integers(2_000, 12_000))


@cache
def nodes(shape: Shape) -> SearchStrategy[Node]:
    """Roles more often than ids, and the leader more often than any other."""
    return st.sampled_from((Role.LEADER, Role.LEADER, Role.FOLLOWER, Role.CONTROLLER, Role.LEADER, *_others(shape)))


def _others(shape: Shape) -> tuple[Node, ...]:
    return (Role.LAST_FOLLOWER, Role.STANDBY, Role.COORDINATOR, *range(1, shape.nodes + 1))


@cache
def replicas() -> SearchStrategy[Node]:
    """Those that have the records."""
    return st.sampled_from((Role.LEADER, Role.FOLLOWER, Role.LEADER, Role.LAST_FOLLOWER))


@cache
def ends(shape: Shape) -> SearchStrategy[tuple[Node, Node]]:
    """Two ends of a link, which are usually two nodes."""
    pairs = ((Role.LEADER, Role.FOLLOWER), (Role.FOLLOWER, Role.LEADER), (Role.CLIENTS, Role.LEADER))
    more = ((Role.LEADER, Role.CLIENTS), (Role.LEADER, Role.CONTROLLER), (Role.CONTROLLER, Role.STANDBY))
    drawn = st.tuples(nodes(shape), nodes(shape)).filter(lambda pair: pair[0] != pair[1])
    return chosen(st.sampled_from(pairs), st.sampled_from(more), drawn)


@cache
def listeners() -> SearchStrategy[Listener | None]:
    """What a cut is limited to; null: to nothing."""
    return st.sampled_from((None, Listener.REPLICATION, Listener.CONTROLLER))


@cache
def keeps() -> SearchStrategy[Keeps]:
    """What becomes of bytes."""
    return st.sampled_from(Keeps)


def one(faults: SearchStrategy[AnyFault]) -> SearchStrategy[Group]:
    """One fault, for a while."""
    return st.tuples(faults, durations()).map(lambda drawn: (timed(0, *drawn),))


def timed(at_ms: int, fault: AnyFault, for_ms: int) -> Timed:
    """A fault with this duration, if it has one."""
    return Timed(at_ms, fault, 0 if fault.is_momentary else for_ms)


def story(*moves: tuple[SearchStrategy[int], SearchStrategy[AnyFault]]) -> SearchStrategy[Group]:
    """Faults one after the other, each a while after the one before."""
    return st.tuples(*(st.tuples(gap, fault, durations()) for gap, fault in moves)).map(_scheduled)


def _scheduled(moves: tuple[tuple[int, AnyFault, int], ...]) -> Group:
    group: list[Timed] = []
    at_ms = 0
    for gap_ms, fault, for_ms in moves:
        at_ms += gap_ms
        group.append(timed(at_ms, fault, for_ms))
    return tuple(group)


AT_ONCE: Final = st.just(0)
