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

from chaos.trial import Keyed, OneByOne, Pipelined, Trial
from fixtures.faults import Timed

_SHORT_MS: Final = 1_000
"""What lasts no longer is not made shorter."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """The result, and how many rounds ran on the way to it."""

    trial: Trial
    runs: int


def smallest(trial: Trial, shows: Callable[[Trial], bool], may_go_on: Callable[[int], bool]) -> Smallest:
    """The smallest round found. The one to begin with counts as showing it, and is not run.

    :param may_go_on: asked before each run, with how many there were.
    """
    runs = 0
    tried = {trial}
    found: Trial | None = trial
    while found is not None:
        trial, found = found, None
        for candidate in _smaller(trial):
            if candidate in tried:
                continue
            if not may_go_on(runs):
                return Smallest(trial, runs)
            tried.add(candidate)
            runs += 1
            if shows(candidate):
                found = candidate
                break
    return Smallest(trial, runs)


def _smaller(trial: Trial) -> Iterator[Trial]:
    """Rounds that are one step smaller, the largest steps first."""
    for schedule in _fewer(trial.schedule):
        yield replace(trial, schedule=_from_the_beginning(schedule))
    for number in range(len(trial.clients)):
        rest = trial.clients[:number] + trial.clients[number + 1 :]
        if any(isinstance(workload, Pipelined | OneByOne | Keyed) for workload in rest):
            yield replace(trial, clients=rest)
    if trial.topic.partitions > 1:
        yield replace(trial, topics=(replace(trial.topic, partitions=1), *trial.topics[1:]))
    if trial.schedule and max(timed.at_ms for timed in trial.schedule) > _SHORT_MS:
        yield replace(trial, schedule=tuple(replace(timed, at_ms=timed.at_ms // 2) for timed in trial.schedule))
    for number, timed in enumerate(trial.schedule):
        if timed.for_ms > _SHORT_MS:
            shorter = replace(timed, for_ms=timed.for_ms // 2)
            yield replace(trial, schedule=(*trial.schedule[:number], shorter, *trial.schedule[number + 1 :]))


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
