"""What the worker processes of a campaign do: run the trial of a seed, run a saved trial, shrink.

Each is a value that opens the work in its process, with the defect that is seeded there as long as it lives.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaos.simulation.campaign_events import SeedRan
from chaos.simulation.counterexample import Counterexample
from chaos.simulation.run import Outcome, run
from chaos.simulation.seeding import seeded
from chaos.simulation.seeds import trial_of_seed
from chaos.simulation.shrinking import smallest
from chaos.trial import Trial

_COLLECTED_AFTER = 20_000, 10, 10
"""Python's thresholds. What a run leaves, all at its end, is found a few runs later; memory stays flat."""
ENDLESS = "endless"
"""What is violated by a trial that does not end: an event that goes on for ever."""


@contextmanager
def _at_work(defect: str) -> Iterator[None]:
    """In a process that runs one trial after the other garbage is looked for seldom, and not in what was loaded."""
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


@dataclass(frozen=True, slots=True)
class RunSeeds:
    """Run the trial of each seed."""

    defect: str

    @contextmanager
    def __call__(self) -> Iterator[Callable[[int], SeedRan]]:
        """The function of a seed."""
        with _at_work(self.defect):
            yield _run_seed


@dataclass(frozen=True, slots=True)
class RunScripts:
    """Run one of some scripts, by its place."""

    defect: str
    scripts: tuple[Trial, ...]

    @contextmanager
    def __call__(self) -> Iterator[Callable[[int], tuple[str, str]]]:
        """The function of a place: what is violated, and how."""

        def run_at(place: int) -> tuple[str, str]:
            violation = run(self.scripts[place]).violation
            return ("", "") if violation is None else (violation.name, violation.text)

        with _at_work(self.defect):
            yield run_at


@dataclass(frozen=True, slots=True)
class ShrinkSeeds:
    """Make the scripts of violating seeds small. `names` has what each violates."""

    defect: str
    names: tuple[tuple[int, str], ...]
    runs_max: int
    seconds_max: float

    @contextmanager
    def __call__(self) -> Iterator[Callable[[int], Counterexample]]:
        """The function of a seed."""
        names = dict(self.names)
        with _at_work(self.defect):
            yield lambda seed: self._shrink(seed, names[seed])

    def _shrink(self, seed: int, name: str) -> Counterexample:
        deadline_s = time.process_time() + self.seconds_max

        def violates(trial: Trial) -> bool:
            violation = run(trial).violation
            return violation is not None and violation.name == name

        found = smallest(
            trial_of_seed(seed), violates, runs_max=self.runs_max, time_is_up=lambda: time.process_time() >= deadline_s
        )
        first, second = run(found.trial), run(found.trial)
        violation = second.violation
        return Counterexample(
            trial=found.trial,
            name=name,
            text="" if violation is None else violation.text,
            seed=seed,
            defect=self.defect,
            at_ms=0 if violation is None else violation.at_ms,
            digest=second.digest,
            is_confirmed=violation is not None and violation.name == name and first.digest == second.digest,
            runs=found.runs,
        )


def _run_seed(seed: int) -> SeedRan:
    began_s = time.process_time()
    return seed_ran(seed, run(trial_of_seed(seed)), time.process_time() - began_s)


def seed_ran(seed: int, outcome: Outcome, seconds: float) -> SeedRan:
    """The event of an outcome."""
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
