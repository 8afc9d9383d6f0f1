"""Shrinking of trials on started clusters: candidates of `chaos.campaign.shrinking`, few, with the largest steps first.

A run takes as long as it takes, and a real cluster does not do the same twice. A candidate that does not show the same
in its one run counts as not showing it; the caller confirms the smallest.

    faults     one half, then a quarter, down to single ones; the first one that is left begins at once
    clients    the same, as long as one of them produces
    time       the schedule at twice the speed; each fault half as long
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from chaos.campaign import shrinking
from chaos.campaign.shrinking import Shrinker, Smallest
from chaos.trial import Keyed, OneByOne, Pipelined, Producer, RequestClient, Retrying, Trial

_SHORT_MS: Final = 1_000
"""A duration that is not shortened."""


def smallest(trial: Trial, shows: Callable[[Trial], bool], may_run: Callable[[int], bool]) -> Smallest:
    """Return the smallest trial found, as `chaos.campaign.shrinking.smallest`."""
    return shrinking.smallest(trial, shows, may_run, _passes, _prepared)


def _passes(shrinker: Shrinker) -> None:
    shrinker.delete(("schedule",))
    shrinker.delete(("clients",))
    topic = shrinker.trial.topic
    shrinker.try_smaller(replace(shrinker.trial, topics=(replace(topic, partitions=1), *shrinker.trial.topics[1:])))
    schedule = shrinker.trial.schedule
    if max((timed.at_ms for timed in schedule), default=0) > _SHORT_MS:
        faster = tuple(replace(timed, at_ms=timed.at_ms // 2) for timed in schedule)
        shrinker.try_smaller(replace(shrinker.trial, schedule=faster))
    for number, timed in enumerate(shrinker.trial.schedule):
        if timed.for_ms > _SHORT_MS:
            shorter = replace(timed, for_ms=timed.for_ms // 2)
            rest = shrinker.trial.schedule
            shrinker.try_smaller(replace(shrinker.trial, schedule=(*rest[:number], shorter, *rest[number + 1 :])))


def _prepared(trial: Trial) -> Trial | None:
    """Return the trial without the wait for its first fault; null if it has no fault or no producer."""
    if not trial.schedule or not any(map(_produces, trial.clients)):
        return None
    first_ms = min(timed.at_ms for timed in trial.schedule)
    return replace(trial, schedule=tuple(replace(timed, at_ms=timed.at_ms - first_ms) for timed in trial.schedule))


def _produces(client: object) -> bool:
    return isinstance(client, Pipelined | OneByOne | Retrying | Keyed | Producer | RequestClient)
