"""Tasks of a campaign's worker processes: run the trial of a seed, run a saved trial, shrink a failing trial."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.campaign.counterexample import Counterexample
from chaos.campaign.shrinking import smallest
from chaos.simulation.campaign_events import SeedRan
from chaos.simulation.run import SimulatedRun, run
from chaos.simulation.seeding import seeded
from chaos.simulation.seeds import trial_of_seed
from conformance.trial.saved import SavedTrial
from conformance.trial.trial import Trial

_COLLECTED_AFTER = 20_000, 10, 10
"""Thresholds for `gc.set_threshold`. A run leaves its garbage at its end; it is collected every few runs."""
ENDLESS = "endless"
"""Name of the violation of a trial that exceeds its processor time, such as by an event that never ends."""


@contextmanager
def working(defect: str) -> Iterator[None]:
    """Return the context of a worker: the broker has this defect, and garbage is collected less often."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    try:
        with seeded(defect):
            yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def run_seed(seed: int) -> SeedRan:
    """Run the trial of a seed."""
    began_s = time.process_time()
    return seed_ran(seed, run(trial_of_seed(seed)), time.process_time() - began_s)


def run_saved(saved: SavedTrial) -> tuple[str, str]:
    """Run a saved trial; return the name and text of its violation, or two empty strings."""
    violation = run(saved.trial).violation
    return ("", "") if violation is None else (violation.name, violation.text)


def shrink_seed(ran: SeedRan, *, defect: str, runs_max: int, seconds_max: float) -> Counterexample:
    """Shrink the failing trial of a seed, and run the result twice more to confirm it.

    :param seconds_max: processor time after which no further trial runs for shrinking.
    """
    deadline_s = time.process_time() + seconds_max

    def violates(trial: Trial) -> bool:
        violation = run(trial).violation
        return violation is not None and violation.name == ran.name

    found = smallest(
        trial_of_seed(ran.seed), violates, lambda runs: runs < runs_max and time.process_time() < deadline_s
    )
    first, second = run(found.trial), run(found.trial)
    violation = second.violation
    return Counterexample(
        trial=found.trial,
        name=ran.name,
        text="" if violation is None else violation.text,
        seed=ran.seed,
        defect=defect,
        at_ms=0 if violation is None else violation.at_ms,
        digest=second.digest,
        is_confirmed=violation is not None and violation.name == ran.name and first.digest == second.digest,
        runs=found.runs,
    )


def seed_ran(seed: int, outcome: SimulatedRun, seconds: float) -> SeedRan:
    """Return the event for a completed run of a seed.

    :param seconds: processor time of the run.
    """
    violation = outcome.violation
    return SeedRan(
        seed=seed,
        digest=outcome.digest,
        events=outcome.events,
        virtual_ms=outcome.virtual_ms,
        operations=outcome.operations,
        seconds=seconds,
        coverage=dict(outcome.coverage),
        name="" if violation is None else violation.name,
        text="" if violation is None else violation.text,
        at_ms=0 if violation is None else violation.at_ms,
    )
