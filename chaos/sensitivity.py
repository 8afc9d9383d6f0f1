"""Whether the suite catches what it is for: each defect is seeded into the broker, and tried until it is caught.

A defect is tried by the trials of one seed after the other, the same seeds for all. One that is expected to break a
requirement is first checked by that, on the target `simulation`. A violation counts only if the trial violates nothing
on the clean broker; otherwise it is a false alarm. As many trials as all defects took together then run on the clean
broker alone.

The time of a defect is what its process has computed, not what the clock on the wall says, so that a busy machine does
not make a hole of what is slow.
"""

import itertools
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from chaos.campaign.violation import Violation
from chaos.campaign.workers import Job, in_order
from chaos.defects.defect import Defect
from chaos.defects.registry import defect as defect_of
from chaos.defects.saved import saved_counterexample
from chaos.simulation.campaign_events import SeedRan
from chaos.simulation.computing_time import EndlessTrialError, bounded
from chaos.simulation.run import run
from chaos.simulation.seeds import trial_of_seed
from chaos.simulation.target import Simulation
from chaos.simulation.work import ENDLESS, run_seed, working
from chaos.trial import Trial
from conformance.engine import run_requirements
from conformance.events import Event, RequirementJudged
from conformance.profiles import Profile
from conformance.registry import select
from conformance.requirements.requirement import Level
from fixtures.targets.target import TargetError
from linearizability.judgement import Verdict
from linearizability.temporary_folder import TemporaryFolder

TRIAL_SECONDS_MAX: Final = 20.0
"""What one trial may compute; a hundred times what it takes."""
_REQUIREMENTS_SEED: Final = 1
_PROFILE: Final = Profile("sensitivity", scripts_max=15, shrink_seconds=0.0)
_WALL_OVER_CPU: Final = 20.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be tried.

    :param defects: by name.
    :param first: the first seed.
    :param seconds: for each defect, of computing.
    :param known_first: try the trial that is saved as a defect's counterexample before those of seeds.
    """

    defects: tuple[str, ...]
    first: int = 0
    seconds: float = 60.0
    workers: int = 1
    known_first: bool = False


@dataclass(frozen=True, slots=True)
class SensitivityStarted(Event):
    """First of all."""

    event: ClassVar[str] = "sensitivity-started"
    defects: tuple[str, ...]
    first: int
    seconds: float
    workers: int


@dataclass(frozen=True, slots=True)
class FalseAlarm:
    """A trial that violates something on the clean broker."""

    seed: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DefectTried(Event):
    """One defect.

    :param name: of what caught it: an invariant, an anomaly, a requirement; empty: missed.
    :param seed: of the trial that caught it; null where a requirement did, or the saved trial.
    :param trials: number of trials that ran.
    :param seconds: of computing.
    """

    event: ClassVar[str] = "defect-tried"
    defect: str
    name: str
    text: str
    is_expected: bool
    seed: int | None
    trials: int
    seconds: float
    false_alarms: tuple[FalseAlarm, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanRan(Event):
    """A trial on the clean broker."""

    event: ClassVar[str] = "clean-ran"
    seed: int
    total: int
    false_alarm: FalseAlarm | None


@dataclass(frozen=True, slots=True)
class SensitivityEnded(Event):
    """Last of all. `complete` is false when it was interrupted."""

    event: ClassVar[str] = "sensitivity-ended"
    complete: bool
    seconds: float


def run_sensitivity(plan: Plan) -> Generator[Event, None, None]:
    """Try every defect, then the clean broker; yield what happens.

    Ctrl-C ends it: the last event says so. Raises `UnknownDefectError`, `WorkerError`.
    """
    for name in plan.defects:
        defect_of(name)
    began_s = time.monotonic()
    yield SensitivityStarted(plan.defects, plan.first, plan.seconds, plan.workers)
    complete = False
    try:
        trials = yield from _try_defects(plan)
        yield from _run_clean(plan, trials)
        complete = True
    except KeyboardInterrupt:
        pass
    yield SensitivityEnded(complete, time.monotonic() - began_s)


def _try_defects(plan: Plan) -> Generator[Event, None, int]:
    """Try the defects; return the number of trials that they took."""

    def overdue(name: str) -> DefectTried:
        text = f"not tried to an end in {_WALL_OVER_CPU:.0f} times the seconds that it may compute"
        return DefectTried(name, "", text, False, None, 0, plan.seconds)

    job = Job(
        partial(_try_by_name, first=plan.first, seconds=plan.seconds, known_first=plan.known_first),
        _WALL_OVER_CPU * (plan.seconds + TRIAL_SECONDS_MAX),
        overdue,
        name="defect {}".format,
    )
    trials = 0
    with closing(in_order(job, iter(plan.defects), plan.workers)) as results:
        for tried in results:
            trials += tried.trials
            yield tried
    return trials


def _run_clean(plan: Plan, trials: int) -> Iterator[Event]:
    job = Job(
        run_seed,
        _WALL_OVER_CPU * TRIAL_SECONDS_MAX,
        lambda seed: SeedRan(seed, "", 0, 0, 0, 0.0, {}, ENDLESS, "the trial has not ended"),
        inside=partial(working, ""),
    )
    with closing(in_order(job, iter(range(plan.first, plan.first + trials)), plan.workers)) as results:
        for ran in results:
            yield CleanRan(ran.seed, trials, _false_alarm(ran))


def _false_alarm(ran: SeedRan) -> FalseAlarm | None:
    return FalseAlarm(ran.seed, ran.name, ran.text) if ran.name else None


# --- in a worker


def _try_by_name(name: str, *, first: int, seconds: float, known_first: bool) -> DefectTried:
    saved = saved_counterexample(name) if known_first else None
    known = None if saved is None else saved.trial
    return try_defect(defect_of(name), itertools.count(first), seconds, known=known)


def try_defect(defect: Defect, seeds: Iterable[int], seconds: float, *, known: Trial | None = None) -> DefectTried:
    """Look for what catches a defect.

    :param seeds: of the trials, in this order.
    :param seconds: of computing; at least one trial is run.
    :param known: a trial that has caught it, to be tried ahead of all others.
    """
    began_s = time.process_time()
    required = [name for name in defect.expected if "/" in name]
    broken = broken_requirement(defect, required) if required else None
    if broken is not None:
        name, text = broken
        return DefectTried(defect.name, name, text, True, None, 0, time.process_time() - began_s)
    caught = None if known is None else violation_of(known, defect)
    if known is not None and caught is not None and violation_of(known) is None:
        is_expected, spent_s = caught.name in defect.expected, time.process_time() - began_s
        return DefectTried(defect.name, caught.name, caught.text, is_expected, None, 1, spent_s)
    false_alarms: list[FalseAlarm] = []
    trials = 0
    for trials, seed in enumerate(seeds, start=1):
        trial = trial_of_seed(seed)
        found = violation_of(trial, defect)
        if found is not None:
            clean = violation_of(trial)
            spent_s = time.process_time() - began_s
            if clean is None:
                is_expected, alarms = found.name in defect.expected, tuple(false_alarms)
                return DefectTried(defect.name, found.name, found.text, is_expected, seed, trials, spent_s, alarms)
            false_alarms.append(FalseAlarm(seed, clean.name, clean.text))
        if time.process_time() - began_s >= seconds:
            break
    return DefectTried(defect.name, "", "", False, None, trials, time.process_time() - began_s, tuple(false_alarms))


def violation_of(trial: Trial, defect: Defect | None = None) -> Violation | None:
    """What a trial violates, with a defect or on the clean broker. One that does not end is `endless`."""
    try:
        with bounded(TRIAL_SECONDS_MAX):
            if defect is None:
                return run(trial).violation
            with defect.seeded():
                return run(trial).violation
    except EndlessTrialError as error:
        return Violation(ENDLESS, str(error), 0)


def broken_requirement(defect: Defect, requirements: list[str]) -> tuple[str, str] | None:
    """Which of these requirements a broker with this defect breaks, and how; a clean one must not."""
    for requirement in requirements:
        with defect.seeded():
            broken = _breach(requirement)
        if broken is not None and _breach(requirement) is None:
            return requirement, broken
    return None


def _breach(requirement: str) -> str | None:
    """How the simulation breaks a requirement; null if it keeps it."""
    with TemporaryFolder() as directory:
        events = run_requirements(
            [Simulation()],
            select([requirement], Level.MAY),
            seed=_REQUIREMENTS_SEED,
            profile=_PROFILE,
            run_dir=Path(directory),
        )
        try:
            for event in events:
                if isinstance(event, RequirementJudged) and event.finding.verdict is Verdict.VIOLATION:
                    return event.finding.reason
        except TargetError as error:
            return str(error)
    return None
