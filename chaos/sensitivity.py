"""Sensitivity of the suite: each defect is seeded into the broker, and trials run until one detects it.

The trials are those of consecutive seeds, the same for all defects. If a defect is expected to break a requirement,
that requirement runs first, on the target `simulation`. A violation detects the defect only if the same trial has no
violation on the clean broker. Otherwise the violation on the clean broker is a false alarm.

Finally the clean broker runs as many trials as all defects together. All violations there are false alarms.

The time of a defect is processor time, not wall-clock time, so that the result does not depend on other load.
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
from conformance.engine import run_requirements
from conformance.events import Event, RequirementJudged
from conformance.profiles import Profile
from conformance.registry import select
from conformance.requirements.requirement import Level
from conformance.trial.trial import Trial
from fixtures.targets.target import TargetError
from linearizability.judgement import Verdict
from linearizability.temporary_folder import TemporaryFolder

TRIAL_SECONDS_MAX: Final = 20.0
"""Limit of the processor time of a trial, which usually takes a tenth of a second."""
_REQUIREMENTS_SEED: Final = 1
_PROFILE: Final = Profile("sensitivity", scripts_max=15, shrink_seconds=0.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Defects, first seed and limits of a measurement.

    :param defects: names of the defects.
    :param first: first seed.
    :param seconds: processor time for each defect.
    :param workers: number of worker processes.
    :param known_first: whether the saved counterexample of a defect runs before the seeds.
    """

    defects: tuple[str, ...]
    first: int = 0
    seconds: float = 60.0
    workers: int = 1
    known_first: bool = False


@dataclass(frozen=True, slots=True)
class SensitivityStarted(Event):
    """First event: the plan of the measurement."""

    event: ClassVar[str] = "sensitivity-started"
    defects: tuple[str, ...]
    first: int
    seconds: float
    workers: int


@dataclass(frozen=True, slots=True)
class FalseAlarm:
    """A trial with a violation on the clean broker."""

    seed: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DefectTried(Event):
    """The result for one defect.

    :param name: name of the invariant, anomaly or requirement that detected the defect; empty if none did.
    :param text: description of the violation; if none detected the defect, empty or the reason why it was cancelled.
    :param is_expected: whether `name` is one of those that are expected for this defect.
    :param seed: seed of the trial that detected the defect; None if none did, or if a requirement or the saved
        counterexample did.
    :param trials: number of trials that ran with the defect.
    :param seconds: processor time.
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
    """End of a trial on the clean broker.

    :param total: number of trials on the clean broker in this measurement.
    """

    event: ClassVar[str] = "clean-ran"
    seed: int
    total: int
    false_alarm: FalseAlarm | None


@dataclass(frozen=True, slots=True)
class SensitivityEnded(Event):
    """Last event, after `seconds` of wall-clock time. `complete` is false if the measurement was interrupted."""

    event: ClassVar[str] = "sensitivity-ended"
    complete: bool
    seconds: float


def run_sensitivity(plan: Plan) -> Generator[Event, None, None]:
    """Try every defect, then the clean broker; yield the events.

    After Ctrl-C the last event is yielded, with `complete` false. Raises `UnknownDefectError`, `WorkerError`.
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
    """Try the defects; return the total number of trials."""

    def overdue(name: str) -> DefectTried:
        text = f"cancelled: it did not end within {TRIAL_SECONDS_MAX:.0f} s after its processor time was over"
        return DefectTried(name, "", text, False, None, 0, plan.seconds)

    job = Job(
        partial(_try_by_name, first=plan.first, seconds=plan.seconds, known_first=plan.known_first),
        plan.seconds + TRIAL_SECONDS_MAX,
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
        TRIAL_SECONDS_MAX,
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
    """Search for a trial or requirement that detects a defect.

    Requirements in `defect.expected` run first, then `known`, then the trials of the seeds in their order.

    :param seconds: processor time after which no further seed is tried.
    :param known: a trial that has detected the defect before.
    """
    began_s = time.process_time()
    required = [name for name in defect.expected if "/" in name]
    broken = broken_requirement(defect, required) if required else None
    if broken is not None:
        name, text = broken
        return DefectTried(defect.name, name, text, True, None, 0, time.process_time() - began_s)
    known_violation = None if known is None else violation_of(known, defect)
    if known is not None and known_violation is not None and violation_of(known) is None:
        is_expected, spent_s = known_violation.name in defect.expected, time.process_time() - began_s
        return DefectTried(defect.name, known_violation.name, known_violation.text, is_expected, None, 1, spent_s)
    false_alarms: list[FalseAlarm] = []
    trials = int(known is not None)
    for seed in seeds:
        trials += 1
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
    """Run a trial with a defect, or on the clean broker, and return its violation: `endless` if it does not end."""
    try:
        with bounded(TRIAL_SECONDS_MAX):
            if defect is None:
                return run(trial).violation
            with defect.seeded():
                return run(trial).violation
    except EndlessTrialError as error:
        return Violation(ENDLESS, str(error), 0)


def broken_requirement(defect: Defect, requirements: list[str]) -> tuple[str, str] | None:
    """Return the first requirement that the broker violates only with this defect, and the reason; else None."""
    for requirement in requirements:
        with defect.seeded():
            broken = _violation_reason(requirement)
        if broken is not None and _violation_reason(requirement) is None:
            return requirement, broken
    return None


def _violation_reason(requirement: str) -> str | None:
    """Run a requirement on the simulation; return the reason of a violation, or None."""
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
