"""Campaign: runs saved failures, then thousands of seeds on worker processes, then shrinks the trials that failed.

No further seed runs after `Plan.failures_max` failures. Results are reported in the order of seeds. Therefore the first
failure is that of the lowest failing seed, whatever the number of workers. The same seeds give the same events, except
for times. Of the seeds with the same violation, only the first is shrunk. At most eight trials are shrunk.
"""

import itertools
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from chaos.campaign.counterexample import Counterexample
from chaos.campaign.workers import Job, in_order
from chaos.simulation.campaign_events import (
    CampaignEnded,
    CampaignStarted,
    FailureReplayed,
    SeedRan,
    ShrinkingStarted,
    Shrunk,
    Standing,
)
from chaos.simulation.seeds import trial_of_seed
from chaos.simulation.work import ENDLESS, run_saved, run_seed, shrink_seed, working
from conformance.events import Event
from conformance.trial.saved import SavedTrial

SEED_SECONDS_MAX: Final = 120.0
"""Limit of the processor time of one trial, which usually takes a tenth of a second."""
_SHRUNK_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """Seeds, defect and limits of a campaign.

    :param first: first seed.
    :param last: last seed; None if only the time limits the campaign.
    :param seconds_max: wall-clock time after which no seed begins; None if there is no limit.
    :param workers: number of worker processes.
    :param defect: name of the seeded defect; empty if there is none.
    :param failures_max: number of failures (failing seeds, and saved failures that still fail) after which no further
        seed runs; None if there is no limit.
    :param shrink_runs_max: maximum number of runs to shrink one failure.
    :param shrink_seconds_max: maximum processor time to shrink one failure.
    """

    first: int = 0
    last: int | None = None
    seconds_max: float | None = None
    workers: int = 1
    defect: str = ""
    failures_max: int | None = 1
    shrink_runs_max: int = 600
    shrink_seconds_max: float = 60.0


def run_campaign(plan: Plan, saved: Sequence[SavedTrial] = ()) -> Generator[Event, None, None]:
    """Run the saved failures that have the plan's defect, then the seeds; yield the events.

    A failing trial that was not shrunk is yielded as it is, in an event `Shrunk`, also after Ctrl-C. After Ctrl-C,
    `complete` is false in the last event. Raises `WorkerError`.
    """
    began_s = time.monotonic()
    failing: dict[str, SeedRan] = {}
    yield CampaignStarted(plan.first, plan.last, plan.seconds_max, plan.workers, plan.defect, plan.failures_max)
    complete = False
    try:
        failures = yield from _replay(plan, [each for each in saved if each.defect == plan.defect])
        if plan.failures_max is None or failures < plan.failures_max:
            yield from _run_seeds(plan, failures, began_s, failing)
            yield from _shrink(plan, failing)
        complete = True
    except KeyboardInterrupt:
        pass
    for ran in failing.values():
        yield Shrunk(_unshrunk(plan, ran))
    yield CampaignEnded(complete, time.monotonic() - began_s)


def _replay(plan: Plan, saved: Sequence[SavedTrial]) -> Generator[Event, None, int]:
    """Run saved failures; return the number of those that fail, with the same violation or another."""
    failures = 0
    job = Job(
        run_saved,
        SEED_SECONDS_MAX,
        overdue=lambda _: (ENDLESS, _endless()),
        inside=partial(working, plan.defect),
        name=lambda each: str(each.directory),
    )
    with closing(in_order(job, iter(saved), plan.workers)) as results:
        for each, (name, text) in zip(saved, results, strict=True):
            failures += bool(name)
            standing = Standing.FAILS if name == each.name else Standing.CHANGED if name else Standing.FIXED
            yield FailureReplayed(str(each.directory), each.name, standing, name, text)
    return failures


def _run_seeds(plan: Plan, failures: int, began_s: float, failing: dict[str, SeedRan]) -> Generator[Event, None, None]:
    """Run seeds until none is left, the time is over, or there are `failures_max` failures.

    The first result with each violation is added to `failing`, by the name of the violation.
    """

    def has_time(_seed: int) -> bool:
        return plan.seconds_max is None or time.monotonic() - began_s < plan.seconds_max

    seeds = itertools.count(plan.first) if plan.last is None else iter(range(plan.first, plan.last + 1))
    job = Job(run_seed, SEED_SECONDS_MAX, _overdue, inside=partial(working, plan.defect))
    with closing(in_order(job, itertools.takewhile(has_time, seeds), plan.workers)) as results:
        for ran in results:
            if ran.name:
                failing.setdefault(ran.name, ran)
                failures += 1
            yield ran
            if plan.failures_max is not None and failures >= plan.failures_max:
                break


def _shrink(plan: Plan, failing: dict[str, SeedRan]) -> Generator[Event, None, None]:
    """Shrink the trials of failing seeds, and remove them from `failing`. A trial that did not end is not shrunk."""
    shrunk = [ran for ran in failing.values() if ran.name != ENDLESS][:_SHRUNK_MAX]
    if not shrunk:
        return
    yield ShrinkingStarted(tuple(ran.seed for ran in shrunk), plan.shrink_seconds_max)
    seconds_max = plan.shrink_seconds_max
    job = Job(
        partial(shrink_seed, defect=plan.defect, runs_max=plan.shrink_runs_max, seconds_max=seconds_max),
        seconds_max + SEED_SECONDS_MAX,
        partial(_unshrunk, plan),
        inside=partial(working, plan.defect),
        name=lambda ran: f"seed {ran.seed}",
    )
    with closing(in_order(job, iter(shrunk), plan.workers)) as results:
        for counterexample in results:
            del failing[counterexample.name]
            yield Shrunk(counterexample)


def _unshrunk(plan: Plan, ran: SeedRan) -> Counterexample:
    """Return a counterexample with the original trial of a seed, which was not shrunk, or not in time."""
    return Counterexample(
        trial=trial_of_seed(ran.seed),
        name=ran.name,
        text=ran.text,
        seed=ran.seed,
        defect=plan.defect,
        at_ms=ran.at_ms,
        digest=ran.digest,
        is_confirmed=None,
    )


def _overdue(seed: int) -> SeedRan:
    return SeedRan(seed, "", 0, 0, 0, SEED_SECONDS_MAX, {}, ENDLESS, _endless())


def _endless() -> str:
    return f"the trial has not ended after {SEED_SECONDS_MAX:.0f} s of processor time"
