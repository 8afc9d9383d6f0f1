"""Rounds by rotating seeds on one or several targets, until the time is over or something is found.

Each seed gives one round, which runs on every target in turn, on a cluster of its own. A round of which a target can do
nothing is passed over. A violation is shrunk and kept as a failure; then the session stops, if it was not told to go
on. A session that seeks a finding draws schedules for the finding's own cluster and clients, and what shows it is
shrunk and kept the same way.
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
from chaos.live.session import fitted, run_on
from chaos.live.shrinking import smallest
from chaos.live.strategies import round_of
from chaos.trial import Trial
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.events import Event
from fixtures.disk.kinds import DiskKind
from fixtures.targets.target import NotInstalledError, TargetError, UnknownTargetError

Tell = Callable[[Event], None]
SHRINKING: Final = "-shrinking-"
"""In the name of a directory: of a round that is run to see whether it still shows something."""
_EMPTY_MAX: Final = 200
"""Rounds in a row of which no target can do anything, after which the session gives up."""
NOT_RUN_MAX: Final = 5
"""Rounds in a row that could not be run, after which the session gives up."""


class NothingRunsError(Exception):
    """One round after the other could not be run. The message is one line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session is to do.

    :param rounds_max: null: until the time is over.
    :param seconds_max: after which no round begins; null: without end.
    :param failures_max: null: goes on whatever is found.
    :param shrink_seconds_max: for one failure; 0: none is shrunk.
    :param keep_histories: of rounds that went well, too.
    :param disk: what log directories lie on; null: the best that there is, where a round takes one.
    :param load: times the records that a round's producers send in a batch.
    :param sought: a finding to draw schedules for; its kinds of faults are then those that are drawn from.
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


def run_chaos(plan: Plan, tell: Tell) -> None:
    """Run the plan. Ctrl-C heals, keeps the history, ends it, and goes on to the caller.

    Raises:
        NothingRunsError: one round after the other could not be run.
    """
    began_s = time.monotonic()
    complete = False
    tell(ChaosStarted(plan.targets, plan.seed, plan.seconds_max, plan.rounds_max, plan.kinds))
    try:
        _Session(plan, tell, began_s).run()
        complete = True
    except NothingRunsError:
        complete = True  # nobody has interrupted it
        raise
    finally:
        tell(ChaosEnded(complete, time.monotonic() - began_s))


@dataclass(slots=True)
class _Session:
    plan: Plan
    tell: Tell
    began_s: float
    failures: int = 0
    reasons: list[str] = field(default_factory=list)
    """Why the newest rounds could not be run, since one was."""

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
        """Run a round as far as the target can do it; false where it can do nothing of it."""
        fitting = fitted(target, trial, self.plan.disk)
        if not fitting.trial.schedule:
            return False
        refused = tuple((repr(fault), reason) for fault, reason in fitting.refused.items())
        run_dir = self.plan.out / f"{target.replace(':', '-')}-{trial.seed}"
        self.tell(RoundStarted(target, fitting.trial, refused, str(run_dir)))
        report = self.judged(target, fitting.trial, run_dir)
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

    def judged(self, target: str, trial: Trial, run_dir: Path) -> Report | None:
        """Run a round; null where that was not possible."""
        began_s = time.monotonic()
        try:
            report = run_on(target, trial, run_dir, lambda injected: self.tell(FaultInjected(injected)), self.plan.disk)
        except (NotInstalledError, UnknownTargetError):
            raise
        except (TargetError, ScriptNotRunError) as error:
            self.reasons.append(str(error))
            self.tell(RoundNotRun(target, trial, str(error)))
            return None
        self.tell(RoundJudged(target, report, str(run_dir), time.monotonic() - began_s))
        return report

    def _shown(self, report: Report) -> str:
        """The name of what a round has shown; empty where that is nothing to keep."""
        if report.violations:
            return report.violations[0].name
        sought = self.plan.sought
        return sought.name if sought is not None and sought.shows(report) else ""

    def _keep(self, target: str, report: Report, name: str, run_dir: Path) -> None:
        """Shrink what was found, run the smallest once more, and keep it."""
        plan = self.plan
        deadline_s = time.monotonic() + plan.shrink_seconds_max
        if plan.shrink_seconds_max:
            self.tell(ShrinkingStarted(target, report.trial.seed, name, plan.shrink_seconds_max))
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
        trials.forget()
        self.tell(Shrunk(found, str(directory)))


@dataclass(slots=True)
class _Trials:
    """Runs rounds to see whether they still show something, and keeps the history of the last that did."""

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
        """Run it."""
        self.runs += 1
        run_dir = self.run_dir.with_name(f"{self.run_dir.name}{SHRINKING}{self.runs}")
        report = self.session.judged(self.target, candidate, run_dir)
        if report is None or not shows(report, self.name):
            shutil.rmtree(run_dir, ignore_errors=True)
            return False
        self.forget()
        self.best_dir, self.report = run_dir, report
        return True

    def forget(self) -> None:
        """Delete the history of the last that did, if that is not the round that was found."""
        if self.best_dir != self.run_dir:
            shutil.rmtree(self.best_dir, ignore_errors=True)
