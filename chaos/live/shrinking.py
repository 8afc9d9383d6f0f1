"""From a round that shows something to the smallest one found that still does, by running each candidate.

A run takes as long as it takes, and a real cluster does not do the same twice: so there are few candidates, the largest
steps first, and one that happens not to show it counts as not showing it. Whether the smallest shows it again is for
whoever asks to find out.

    faults     all but one half, then all but a quarter, and so on, down to single ones
    clients    one kind after the other, as long as somebody writes
    time       the schedule at twice the speed; each fault half as long
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from chaos.faults import Timed
from chaos.live.round import Keyed, OneByOne, Pipelined, Round

_SHORT_MS: Final = 1_000
"""What lasts no longer is not made shorter."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """The result, and how many rounds ran on the way to it."""

    round: Round
    runs: int


def smallest(a_round: Round, shows: Callable[[Round], bool], may_go_on: Callable[[int], bool]) -> Smallest:
    """The smallest round found. The one to begin with counts as showing it, and is not run.

    :param may_go_on: asked before each run, with how many there were.
    """
    runs = 0
    tried = {a_round}
    found: Round | None = a_round
    while found is not None:
        a_round, found = found, None
        for candidate in _smaller(a_round):
            if candidate in tried:
                continue
            if not may_go_on(runs):
                return Smallest(a_round, runs)
            tried.add(candidate)
            runs += 1
            if shows(candidate):
                found = candidate
                break
    return Smallest(a_round, runs)


def _smaller(a_round: Round) -> Iterator[Round]:
    """Rounds that are one step smaller, the largest steps first."""
    for schedule in _fewer(a_round.schedule):
        yield replace(a_round, schedule=_from_the_beginning(schedule))
    for number in range(len(a_round.workloads)):
        rest = a_round.workloads[:number] + a_round.workloads[number + 1 :]
        if any(isinstance(workload, Pipelined | OneByOne | Keyed) for workload in rest):
            yield replace(a_round, workloads=rest)
    if a_round.topic.partitions > 1:
        yield replace(a_round, topic=replace(a_round.topic, partitions=1))
    if a_round.schedule and max(timed.at_ms for timed in a_round.schedule) > _SHORT_MS:
        yield replace(a_round, schedule=tuple(replace(timed, at_ms=timed.at_ms // 2) for timed in a_round.schedule))
    for number, timed in enumerate(a_round.schedule):
        if timed.for_ms > _SHORT_MS:
            shorter = replace(timed, for_ms=timed.for_ms // 2)
            yield replace(a_round, schedule=(*a_round.schedule[:number], shorter, *a_round.schedule[number + 1 :]))


def _fewer(schedule: tuple[Timed, ...]) -> Iterator[tuple[Timed, ...]]:
    size = len(schedule) // 2
    while size >= 1:
        for begin in range(0, len(schedule), size):
            rest = schedule[:begin] + schedule[begin + size :]
            if rest:
                yield rest
        size //= 2


def _from_the_beginning(schedule: tuple[Timed, ...]) -> tuple[Timed, ...]:
    """The same, without the wait for the first fault."""
    first_ms = min(timed.at_ms for timed in schedule)
    return tuple(replace(timed, at_ms=timed.at_ms - first_ms) for timed in schedule)
