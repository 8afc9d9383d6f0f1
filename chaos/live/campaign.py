"""Chaos session: rounds with consecutive seeds on one or several targets, until a limit or a failure.

Each seed gives one round, which runs on every target in turn, on a new cluster. A round without an applicable fault is
skipped. A violation is shrunk and saved as a failure, and the session stops after `failures_max` failures. A session
that searches for a finding generates schedules for the finding's cluster and clients; a round that shows it is shrunk
and saved the same way.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chaos.campaign.counterexample import Counterexample
from chaos.campaign.saved import save
from chaos.live.events import (
    ChaosEnded,
    ChaosStarted,
    FaultInjected,
    RoundJudged,
    RoundNotRun,
    RoundStarted,
    ShrinkingStarted,
    Shrunk,
)
from chaos.live.failure import shows, text_of
from chaos.live.fault_kinds import KINDS
from chaos.live.findings import ChaosFinding, search_round
from chaos.live.report import Report
from chaos.live.session import remove_unsupported_faults, run_on
from chaos.live.shrinking import smallest
from chaos.live.strategies import round_of
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.events import Event
from conformance.trial.trial import Trial
from fixtures.disk.kinds import DiskKind
from fixtures.targets.target import NotInstalledError, TargetError, UnknownTargetError

Emit = Callable[[Event], None]
_EMPTY_MAX: Final = 200
"""Number of consecutive rounds without an applicable fault after which the session ends."""
NOT_RUN_MAX: Final = 5
"""Number of consecutive rounds that could not be run after which the session fails."""


class NothingRunsError(Exception):
    """Error after several consecutive rounds that could not be run. The message is one line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Targets, seeds, limits and directories of a session.

    :param rounds_max: Number of rounds; None: no limit.
    :param seconds_max: Time after which no round begins; None: no limit.
    :param failures_max: Number of failures after which the session stops; None: no limit.
    :param shrink_seconds_max: Time to shrink one failure; 0: none is shrunk.
    :param keep_histories: Whether histories of rounds without a failure are kept.
    :param disk: File system of log directories; None: the best available one, if a round needs one.
    :param load: Factor for the number of records in a producer's batch.
    :param sought: Finding to search for, with its own kinds of faults.
    """

    targets: tuple[str, ...]
    seed: int
    out: Path
    failures: Path
    kinds: tuple[str, ...] = tuple(KINDS)
    rounds_max: int | None = 1
    seconds_max: float | None = None
    failures_max: int | None = 1
    shrink_seconds_max: float = 300.0
    keep_histories: bool = True
    sought: ChaosFinding | None = None
    disk: DiskKind | None = None
    load: int = 1


def run_chaos(plan: Plan, emit: Emit) -> None:
    """Run the plan. After Ctrl-C the cluster is healed, the history is completed, and the exception is raised again.

    Raises:
        NothingRunsError: consecutive rounds could not be run.
    """
    began_s = time.monotonic()
    complete = False
    emit(ChaosStarted(plan.targets, plan.seed, plan.seconds_max, plan.rounds_max, plan.kinds))
    try:
        _Session(plan, emit, began_s).run()
        complete = True
    except NothingRunsError:
        complete = True  # not interrupted
        raise
    finally:
        emit(ChaosEnded(complete, time.monotonic() - began_s))


@dataclass(slots=True)
class _Session:
    plan: Plan
    emit: Emit
    began_s: float
    failures: int = 0
    reasons: list[str] = field(default_factory=list)
    """Errors of the rounds that could not be run since the last round that was judged."""

    def run(self) -> None:
        rounds, empty, seed = 0, 0, self.plan.seed
        while not self._is_over(rounds) and empty < _EMPTY_MAX:
            trial = self._drawn(seed)
            ran = [self._run(target, trial) for target in self.plan.targets if not self._is_over(rounds)]
            rounds, empty = rounds + any(ran), 0 if any(ran) else empty + 1
            seed += 1

    def _drawn(self, seed: int) -> Trial:
        sought = self.plan.sought
        drawn = round_of(seed, self.plan.kinds if sought is None else sought.kinds)
        return (drawn if sought is None else search_round(sought, drawn)).under_load(self.plan.load)

    def _is_over(self, rounds: int) -> bool:
        plan = self.plan
        out_of_time = plan.seconds_max is not None and time.monotonic() - self.began_s >= plan.seconds_max
        enough = plan.rounds_max is not None and rounds >= plan.rounds_max
        failed = plan.failures_max is not None and self.failures >= plan.failures_max
        return out_of_time or enough or failed

    def _run(self, target: str, trial: Trial) -> bool:
        """Run a round with the faults that the target supports; return false if it supports none of them."""
        supported = remove_unsupported_faults(target, trial, self.plan.disk)
        if not supported.trial.schedule:
            return False
        unsupported = tuple((repr(fault), reason) for fault, reason in supported.unsupported.items())
        run_dir = self.plan.out / f"{target.replace(':', '-')}-{trial.seed}"
        self.emit(RoundStarted(target, supported.trial, unsupported, str(run_dir)))
        report = self.judged(target, supported.trial, run_dir)
        name = "" if report is None else self._shown(report)
        if report is not None and name:
            self.failures += 1
            self._keep(target, report, name, run_dir)
        elif not self.plan.keep_histories:
            shutil.rmtree(run_dir, ignore_errors=True)
        if report is not None:
            self.reasons.clear()
        elif len(self.reasons) >= NOT_RUN_MAX:
            raise NothingRunsError(f"{NOT_RUN_MAX} rounds in a row could not be run, the last one: {self.reasons[-1]}")
        return True

    def judged(self, target: str, trial: Trial, run_dir: Path, *, is_shrinking: bool = False) -> Report | None:
        """Run and judge a round, or a run that shrinks a failure; return None if it could not be run."""
        began_s = time.monotonic()
        try:
            report = run_on(target, trial, run_dir, lambda injected: self.emit(FaultInjected(injected)), self.plan.disk)
        except (NotInstalledError, UnknownTargetError):
            raise
        except (TargetError, ScriptNotRunError) as error:
            self.reasons.append(str(error))
            self.emit(RoundNotRun(target, trial, str(error), is_shrinking))
            return None
        self.emit(RoundJudged(target, report, str(run_dir), time.monotonic() - began_s, is_shrinking))
        return report

    def _shown(self, report: Report) -> str:
        """Return the name of the violation or finding of a round; empty if there is none."""
        if report.violations:
            return report.violations[0].name
        sought = self.plan.sought
        return sought.name if sought is not None and sought.shows(report) else ""

    def _keep(self, target: str, report: Report, name: str, run_dir: Path) -> None:
        """Shrink a failure, run the smallest trial again to confirm it, and save it.

        If the plan has no time for shrinking, the failure is saved as it is.
        """
        plan = self.plan
        deadline_s = time.monotonic() + plan.shrink_seconds_max
        if plan.shrink_seconds_max:
            self.emit(ShrinkingStarted(target, report.trial.seed, name, plan.shrink_seconds_max))
        trials = _Trials(self, target, name, run_dir, report)
        shrunk = smallest(report.trial, trials.shows, lambda _: time.monotonic() < deadline_s)
        confirmed = trials.shows(shrunk.trial) if plan.shrink_seconds_max else None
        found = Counterexample(
            shrunk.trial,
            name,
            text_of(trials.report, name),
            shrunk.trial.seed,
            target,
            is_confirmed=confirmed,
            runs=shrunk.runs,
        )
        directory = save(plan.failures, found)
        shutil.copytree(trials.best_dir, directory / "run", dirs_exist_ok=True)
        trials.delete_best()
        self.emit(Shrunk(found, str(directory)))


@dataclass(slots=True)
class _Trials:
    """Runner of shrunk rounds. It keeps the history of the last one that shows the failure."""

    session: _Session
    target: str
    name: str
    run_dir: Path
    report: Report
    runs: int = 0
    best_dir: Path = field(init=False)

    def __post_init__(self) -> None:
        self.best_dir = self.run_dir

    def shows(self, candidate: Trial) -> bool:
        """Run a candidate, and return whether it shows the failure."""
        self.runs += 1
        run_dir = self.run_dir.with_name(f"{self.run_dir.name}-shrinking-{self.runs}")
        report = self.session.judged(self.target, candidate, run_dir, is_shrinking=True)
        if report is None or not shows(report, self.name):
            shutil.rmtree(run_dir, ignore_errors=True)
            return False
        self.delete_best()
        self.best_dir, self.report = run_dir, report
        return True

    def delete_best(self) -> None:
        """Delete the history of the last shrunk round, if there is one."""
        if self.best_dir != self.run_dir:
            shutil.rmtree(self.best_dir, ignore_errors=True)
