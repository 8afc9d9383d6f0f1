"""Simulation campaign of `kafkatrial simulate`: plan, run, saved counterexamples and summary.

Each counterexample is saved with its program. It then runs once more with a trace, which yields its diagram and its
history, a run directory for `kafkatrial check`. A trial that does not end has neither.
"""

import json
import os
import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from chaos.campaign.counterexample import Counterexample
from chaos.campaign.interruption import interruptible
from chaos.campaign.saved import load_failures, save
from chaos.simulation.campaign import Plan, run_campaign
from chaos.simulation.campaign_events import SeedRan, Shrunk
from chaos.simulation.seeding import seeded
from chaos.simulation.work import ENDLESS
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import UsageError, print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.seeds import generate_seed
from kafkatrial.simulation_pictures import draw_counterexample
from kafkatrial.simulation_progress import SimulationProgress
from kafkatrial.simulation_results import SimulationResults
from kafkatrial.simulation_tables import render_simulation

FAILURES = Path(".kafkatrial") / "simulation" / "failures"
_DEFAULT_LAST = 999
_SEEDS = re.compile(r"(\d+)(?:\.\.(\d+))?")
_SEEDS_MAX = 2**63


@dataclass(frozen=True, slots=True)
class SimulationChoices:
    """The options of the command line. `failures_max` is None if all seeds run, however many fail."""

    seeds: str | None
    minutes: float | None
    defect: str
    workers: int | None
    failures_max: int | None


def plan_simulation(choices: SimulationChoices) -> Plan:
    """Check every choice before anything starts.

    Raises:
        UsageError: a choice is wrong.
        UnknownDefectError: there is no such defect.
    """
    if choices.minutes is not None and not 0 < choices.minutes < float("inf"):
        raise UsageError(f"--minutes: {choices.minutes:g} is not a positive number of minutes")
    with seeded(choices.defect):
        pass
    first, last = _range(choices.seeds, timed=choices.minutes is not None)
    workers = choices.workers or len(os.sched_getaffinity(0))
    return Plan(
        first=first,
        last=last,
        seconds_max=None if choices.minutes is None else choices.minutes * 60,
        workers=workers if last is None else min(workers, last - first + 1),
        defect=choices.defect,
        failures_max=choices.failures_max,
    )


def _range(seeds: str | None, *, timed: bool) -> tuple[int, int | None]:
    if seeds is None:
        return (generate_seed(), None) if timed else (0, _DEFAULT_LAST)
    found = _SEEDS.fullmatch(seeds.strip())
    if found is None:
        raise UsageError(f"--seeds: {seeds} is neither a range like 0..999 nor a seed")
    first, last = int(found[1]), int(found[2] or found[1])
    if first > last:
        raise UsageError(f"--seeds: {seeds} is empty; the first seed is above the last")
    if last >= _SEEDS_MAX:
        raise UsageError(f"--seeds: {seeds} is beyond 2^63 - 1")
    return first, last


def _check_can_be_saved_in(directory: Path) -> None:
    """Raise UsageError if failures cannot be saved in a directory. Called before the campaign, so that none is lost."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(f"{directory}: a failure cannot be saved there: {existing} is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{directory}: a failure cannot be saved there: {existing} cannot be written to")


class SimulationRunner:
    """Runner of a plan. `run` returns the exit code; the counterexamples are saved."""

    def __init__(self, plan: Plan, out: Path | None, *, as_json: bool, digests: bool) -> None:
        self._plan = plan
        self._failures = out or FAILURES
        _check_can_be_saved_in(self._failures)
        self._as_json = as_json
        self._digests: dict[int, str] | None = {} if digests else None
        self._console = stdout_console(quiet=as_json)
        self._results = SimulationResults()
        self._saved = load_failures(self._failures)

    def run(self) -> ExitCode:
        """Run to the end, or until an interruption, print the result, and return the exit code."""
        with interruptible():
            try:
                self._follow_campaign()
            except KeyboardInterrupt:
                print_error("interrupted")
        if self._as_json:
            result = self._results.as_json()
            if self._digests is not None:
                result["digests"] = self._digests
            print(json.dumps(result))  # noqa: T201  the command's output
        else:
            show(self._console, render_simulation(self._results))
        return self._results.exit_code

    def _follow_campaign(self) -> None:
        results, events = self._results, run_campaign(self._plan, self._saved)
        with (
            SimulationProgress(self._console, digests=self._digests is not None) as progress,
            closing(events),
        ):
            for event in events:
                results.handle(event)
                if isinstance(event, Shrunk):
                    results.directories.append(self._save(event.counterexample))
                if isinstance(event, SeedRan) and self._digests is not None:
                    self._digests[event.seed] = event.digest
                progress.handle(event, results)

    def _save(self, found: Counterexample) -> Path:
        try:
            directory = save(self._failures, found)
        except OSError as error:
            raise UsageError(f"{self._failures}: a failure cannot be saved there: {error.strerror}") from error
        if found.name != ENDLESS:
            try:
                draw_counterexample(found, directory)
            except Exception as error:  # noqa: BLE001  a missing picture is no error
                print_error(f"no picture of {found.name}: {' '.join(str(error).split())}")
        return directory
