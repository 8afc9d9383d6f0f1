"""Shrinking of trials on started clusters: a few candidates of `chaos.campaign.shrinking`, the largest steps first.

A run takes real time, and a real cluster is not deterministic. A candidate that does not show the violation in its only
run is discarded; the caller confirms the smallest one.

    faults     halves, quarters, down to single ones are deleted; the first remaining one begins at once
    clients    the same, as long as one of them produces
    topic      the first topic has one partition
    time       the schedule runs at twice the speed; each fault is half as long
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from chaos.campaign import shrinking
from chaos.campaign.shrinking import Shrinker, Smallest
from conformance.trial.trial import Trial
from conformance.trial.workloads import Keyed, OneByOne, Pipelined, Retrying
from fixtures.clients.steps import Producer, RequestClient

_SHORT_MS: Final = 1_000
"""The longest time that is not shortened."""


def smallest(trial: Trial, shows: Callable[[Trial], bool], may_run: Callable[[int], bool]) -> Smallest:
    """Return the smallest trial found, as `chaos.campaign.shrinking.smallest` does."""
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
    """Return the trial without the wait for its first fault; None if it has no fault or no producer."""
    if not trial.schedule or not any(map(_produces, trial.clients)):
        return None
    first_ms = min(timed.at_ms for timed in trial.schedule)
    return replace(trial, schedule=tuple(replace(timed, at_ms=timed.at_ms - first_ms) for timed in trial.schedule))


def _produces(client: object) -> bool:
    return isinstance(client, Pipelined | OneByOne | Retrying | Keyed | Producer | RequestClient)
