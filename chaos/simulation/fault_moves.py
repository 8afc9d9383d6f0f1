"""Hypothesis strategies for parts of faults (times, durations, nodes, links), and for groups of one or more faults."""

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
"""Faults with `at_ms` relative to the start of the group."""


@cache
def gaps() -> SearchStrategy[int]:
    """Draw the time from the start of one fault or group to the start of the next, in milliseconds."""
    return chosen(st.integers(0, 60), st.integers(0, 1_000), st.integers(0, 6_000))


@cache
def durations() -> SearchStrategy[int]:
    """Draw the duration of a fault, in milliseconds.

    It is shorter than most request timeouts, near `replica.lag.time.max.ms`, or near a session timeout.
    """
    return chosen(st.integers(50, 400), st.integers(200, 3_000), st.integers(2_000, 12_000))


@cache
def nodes(shape: Shape) -> SearchStrategy[Node]:
    """Draw a node: roles more often than ids, and the leader more often than any other."""
    return st.sampled_from((Role.LEADER, Role.LEADER, Role.FOLLOWER, Role.CONTROLLER, Role.LEADER, *_others(shape)))


def _others(shape: Shape) -> tuple[Node, ...]:
    return (Role.LAST_FOLLOWER, Role.STANDBY, Role.COORDINATOR, *range(1, shape.nodes + 1))


@cache
def replicas() -> SearchStrategy[Node]:
    """Draw a replica of the first partition."""
    return st.sampled_from((Role.LEADER, Role.FOLLOWER, Role.LEADER, Role.LAST_FOLLOWER))


@cache
def ends(shape: Shape) -> SearchStrategy[tuple[Node, Node]]:
    """Draw the two ends of a link, mostly two nodes."""
    pairs = ((Role.LEADER, Role.FOLLOWER), (Role.FOLLOWER, Role.LEADER), (Role.CLIENTS, Role.LEADER))
    more = ((Role.LEADER, Role.CLIENTS), (Role.LEADER, Role.CONTROLLER), (Role.CONTROLLER, Role.STANDBY))
    drawn = st.tuples(nodes(shape), nodes(shape)).filter(lambda pair: pair[0] != pair[1])
    return chosen(st.sampled_from(pairs), st.sampled_from(more), drawn)


@cache
def listeners() -> SearchStrategy[Listener | None]:
    """Draw the listener that a cut is limited to, or None for no limit."""
    return st.sampled_from((None, Listener.REPLICATION, Listener.CONTROLLER))


@cache
def keeps() -> SearchStrategy[Keeps]:
    """Draw whether bytes on a cut link arrive after healing or are lost."""
    return st.sampled_from(Keeps)


def one(faults: SearchStrategy[AnyFault]) -> SearchStrategy[Group]:
    """Return a strategy for groups of a single fault, with a drawn duration."""
    return st.tuples(faults, durations()).map(lambda drawn: (timed(0, *drawn),))


def timed(at_ms: int, fault: AnyFault, for_ms: int) -> Timed:
    """Return a fault with a time and a duration; the duration of a momentary fault is 0."""
    return Timed(at_ms, fault, 0 if fault.is_momentary else for_ms)


def story(*moves: tuple[SearchStrategy[int], SearchStrategy[AnyFault]]) -> SearchStrategy[Group]:
    """Return a strategy for groups of several faults, each with a drawn duration.

    :param moves: for each fault, two strategies: for the time since the start of the previous fault in milliseconds
        (for the first fault: since the start of the group), and for the fault itself.
    """
    return st.tuples(*(st.tuples(gap, fault, durations()) for gap, fault in moves)).map(_scheduled)


def _scheduled(moves: tuple[tuple[int, AnyFault, int], ...]) -> Group:
    group: list[Timed] = []
    at_ms = 0
    for gap_ms, fault, for_ms in moves:
        at_ms += gap_ms
        group.append(timed(at_ms, fault, for_ms))
    return tuple(group)


AT_ONCE: Final = st.just(0)
