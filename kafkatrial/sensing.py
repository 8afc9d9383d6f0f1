"""Measurement of how many defects the suite detects, for `kafkatrial sensitivity`: plan, run and reports."""

import json
import os
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from chaos.campaign.counterexample import program_of
from chaos.campaign.interruption import interruptible
from chaos.defects.defect import Area, Defect
from chaos.defects.registry import DEFECTS, defect
from chaos.defects.saved import saved_counterexample
from chaos.sensitivity import (
    CleanRan,
    DefectTried,
    FalseAlarm,
    Plan,
    SensitivityEnded,
    run_sensitivity,
)
from conformance.events import Event
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import UsageError, print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.sensitivity_progress import SensitivityProgress
from kafkatrial.sensitivity_tables import render_list, render_sensitivity
from kafkatrial.versions import own_version
from reports.sensitivity import DefectRow, FalseAlarmRow, Sensitivity, write_sensitivity

JSON_NAME = "sensitivity.json"


@dataclass(frozen=True, slots=True)
class SensitivityChoices:
    """The options of the command line."""

    names: tuple[str, ...]
    seconds: float
    first_seed: int
    workers: int | None
    known_first: bool = False


def plan_sensitivity(choices: SensitivityChoices) -> Plan:
    """Check every choice before anything starts. Raises `UnknownDefectError`."""
    workers = choices.workers or len(os.sched_getaffinity(0))
    selected = tuple(each.name for each in select_defects(choices.names))
    return Plan(selected, choices.first_seed, choices.seconds, workers, choices.known_first)


def select_defects(names: tuple[str, ...]) -> list[Defect]:
    """Return the defects with these names or areas, in registry order; without names, all.

    Raises `UnknownDefectError`.
    """
    areas = {area for area in Area if area.value in names}
    wanted = {defect(name).name for name in names if name not in {area.value for area in areas}}
    return [each for each in DEFECTS.values() if not names or each.area in areas or each.name in wanted]


def list_defects(names: tuple[str, ...], *, as_json: bool) -> None:
    """Print the defects, without seeding them."""
    selected = select_defects(names)
    if as_json:
        print(json.dumps([_facts(each) for each in selected], indent=1))  # noqa: T201  the command's output
    else:
        show(stdout_console(), render_list(selected))


def _facts(each: Defect) -> dict[str, object]:
    return {
        "name": each.name,
        "area": each.area.value,
        "story": each.story,
        "sources": each.sources,
        "place": each.place,
        "expected": each.expected,
    }


class SensitivityRunner:
    """Runner of a plan. `run` returns the exit code."""

    def __init__(self, plan: Plan, out: Path | None, *, as_json: bool) -> None:
        self._plan = plan
        self._out = out
        self._as_json = as_json
        self._console = stdout_console(quiet=as_json)
        self._results = Sensitivity(
            kafkatrial=own_version(),
            first_seed=plan.first,
            budget_s=plan.seconds,
            workers=plan.workers,
            planned=len(plan.defects),
        )

    def run(self) -> ExitCode:
        """Run to the end, or until an interruption, write and print the result, and return the exit code."""
        results = self._results
        with interruptible():
            try:
                self._follow()
            except KeyboardInterrupt:
                print_error("interrupted")
        if self._out is not None:
            self._write(self._out)
        if self._as_json:
            print(json.dumps(results.as_json()))  # noqa: T201  the command's output
        else:
            show(self._console, render_sensitivity(results))
        return exit_code_of_sensitivity(results)

    def _follow(self) -> None:
        events = run_sensitivity(self._plan)
        with SensitivityProgress(self._console) as progress, closing(events):
            for event in events:
                self._add(event)
                progress.handle(event, self._results)

    def _add(self, event: Event) -> None:
        results = self._results
        match event:
            case DefectTried():
                results.rows.append(row_of(event))
                self._add_false_alarms(*event.false_alarms)
            case CleanRan():
                results.clean_scripts += 1
                self._add_false_alarms(*filter(None, [event.false_alarm]))
            case SensitivityEnded():
                results.complete, results.seconds = event.complete, event.seconds

    def _add_false_alarms(self, *alarms: FalseAlarm) -> None:
        """Add false alarms, one per seed: trials of several defects or of the clean broker may show the same one."""
        known = {row.seed for row in self._results.false_alarms}
        rows = [FalseAlarmRow(**asdict(alarm)) for alarm in alarms]
        self._results.false_alarms += [row for row in rows if row.seed not in known]

    def _write(self, directory: Path) -> None:
        try:
            page = write_sensitivity(self._results, directory)
            (directory / JSON_NAME).write_text(json.dumps(self._results.as_json(), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{directory}: the reports cannot be written there: {error.strerror}") from error
        self._console.print(f"page: {page}", soft_wrap=True)


def row_of(tried: DefectTried) -> DefectRow:
    """Return the row of a defect in the report."""
    found = defect(tried.defect)
    saved = saved_counterexample(found.name)
    if tried.seed is not None:
        reproduce = f"kafkatrial simulate --seeds {tried.seed} --defect {found.name}"
    elif tried.name:  # detected by a requirement or by the saved trial, which this command runs first
        reproduce = f"kafkatrial sensitivity {'' if '/' in tried.name else '--known-first '}{found.name}"
    else:
        reproduce = ""
    return DefectRow(
        name=found.name,
        area=found.area.value,
        story=found.story,
        sources=found.sources,
        place=found.place,
        expected=found.expected,
        caught_by=tried.name,
        text=tried.text,
        is_expected=tried.is_expected,
        seed=tried.seed,
        scripts=tried.trials,
        seconds=tried.seconds,
        program="" if saved is None else program_of(saved),
        reproduce=reproduce,
    )


def exit_code_of_sensitivity(results: Sensitivity) -> ExitCode:
    """Return the exit code: a missed defect is a violation, and so is a false alarm."""
    if results.missed or results.false_alarms:
        return ExitCode.VIOLATION
    if not results.complete:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if results.rows else ExitCode.NOTHING_RAN
