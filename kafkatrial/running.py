"""Run of the conformance suite for `kafkatrial run`: plan, events, results and reports.

The engine yields events. Each event is added to the results, shown, and, for the pytest plugin, written as a line of
JSON. results.json is rewritten at every verdict, so that a killed run leaves its findings. Unless it is killed, a run
writes its reports at the end, and prints its seed.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import chaos.targets  # noqa: F401 - registers the target `simulation`
from chaos.campaign.interruption import interruptible
from conformance.engine import Expectations, run_requirements
from conformance.events import Event, RequirementJudged
from conformance.profiles import PROFILES, Profile
from conformance.requirements.requirement import Requirement
from conformance.targets import target_of_requirements
from fixtures.targets.target import Target
from kafkatrial.collector import Collector, exit_code_of_results
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import UsageError, exit_code_of, print_error, report
from kafkatrial.exit_codes import ExitCode
from kafkatrial.expected import expectations_of_target, file_of_target, load_known
from kafkatrial.output import is_reader_gone
from kafkatrial.pictures import picture_failures
from kafkatrial.progress import RunProgress
from kafkatrial.run_directory import make_run_directory
from kafkatrial.seeds import generate_seed
from kafkatrial.selection import select_requirements
from kafkatrial.settings import RunSettings
from linearizability.history.errors import HistoryError
from linearizability.printable import one_line
from reports.html import write_html
from reports.junit import write_junit
from reports.results import Results, write_results
from reports.terminal import as_text, render_finding, render_results


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The checked choices of a run, with its seed; nothing has started."""

    targets: tuple[Target, ...]
    requirements: tuple[Requirement, ...]
    seed: int
    profile: Profile
    expectations: Expectations
    expectations_file: Path | None
    """The user's file for all targets; None selects each target's own file."""
    out: Path | None


def plan_run(settings: RunSettings, wanted: tuple[str, ...]) -> RunPlan:
    """Check all options before anything starts.

    Raises:
        UsageError, UnknownTargetError, ExpectationsError: an option is invalid.
    """
    if settings.profile not in PROFILES:
        raise UsageError(f"--profile: no profile {settings.profile}; there are {', '.join(PROFILES)}")
    targets = tuple(target_of_requirements(name, settings.nodes) for name in dict.fromkeys(settings.target))
    return RunPlan(
        targets=targets,
        requirements=select_requirements(wanted, settings.level),
        seed=generate_seed() if settings.seed is None else settings.seed,
        profile=PROFILES[settings.profile],
        expectations=_expectations(targets, settings.expectations),
        expectations_file=settings.expectations,
        out=settings.out,
    )


def _expectations(targets: Sequence[Target], file: Path | None) -> Expectations:
    """Return expectations by target name: from the user's file for all targets, else from each target's own file."""
    if file is None:
        return {target.name: expectations_of_target(target.name) for target in targets}
    expected = load_known(file)
    return {target.name: expected for target in targets}


def plan_as_json(plan: RunPlan) -> str:
    """Return the plan as one JSON object, for the pytest plugin."""
    requirements = [{"id": r.id, "level": str(r.level), "text": r.text} for r in plan.requirements]
    targets = [target.name for target in plan.targets]
    return json.dumps({"targets": targets, "seed": plan.seed, "requirements": requirements})


class SuiteRunner:
    """Runner of a plan. `run` returns the exit code; results, reports and logs are in the run directory."""

    def __init__(self, plan: RunPlan, *, events_fd: int | None = None) -> None:
        self._plan = plan
        self._events = None if events_fd is None else os.fdopen(events_fd, "wb", closefd=False)
        now = datetime.now(UTC)
        self._run_dir = make_run_directory(plan.out, now=now, seed=plan.seed)
        names = [target.name for target in plan.targets]
        self._collector = Collector(names, plan.requirements, seed=plan.seed, profile=plan.profile.name, now=now)
        self._console = stdout_console(quiet=events_fd is not None)

    def run(self) -> ExitCode:
        """Run to the end, or until an error or an interruption, write the reports, and return the exit code."""
        failed: Exception | None = None
        with interruptible():
            try:
                self._follow_engine()
            except KeyboardInterrupt:
                print_error("interrupted; the cluster is stopped")
            except BrokenPipeError as error:
                if not is_reader_gone():
                    failed = error
            except Exception as error:  # noqa: BLE001  the reports are written first; then the error is printed
                failed = error
            self._keep_broker_logs()
            try:
                return self._conclude(failed)
            except BrokenPipeError as error:  # raised by printing the summary, when the results are already saved
                return ExitCode.OUTPUT_CLOSED if is_reader_gone() else report(failed or error, self._run_dir)
            except OSError as error:  # such as a full disk; an earlier failure explains more
                return report(failed or error, self._run_dir)

    def _files_of_known_violations(self) -> Iterator[str]:
        """Yield a line for each target with known violations: how many there are, and in which file."""
        for target in self._plan.targets:
            if count := len(self._plan.expectations[target.name]):
                file = self._plan.expectations_file or file_of_target(target.name)
                yield f"known violations of {target.name}: {count}, in {file}"

    def _follow_engine(self) -> None:
        plan = self._plan
        events = run_requirements(
            plan.targets,
            plan.requirements,
            seed=plan.seed,
            profile=plan.profile,
            run_dir=self._run_dir,
            expectations=plan.expectations,
        )
        write_results(self._collector.results, self._run_dir)  # a run killed before a verdict counts as unfinished
        with RunProgress(self._console, tuple(self._files_of_known_violations())) as progress, closing(events):
            for event in events:
                self._collector.handle(event)
                if isinstance(event, RequirementJudged):
                    write_results(self._collector.results, self._run_dir)
                progress.handle(event)
                self._pass_on(event)

    def _keep_broker_logs(self) -> None:
        for target in self._plan.targets:
            with suppress(OSError):  # the logs only help to debug, so a run does not fail without them
                target.collect_logs(self._run_dir / "brokers" / target.name.replace(":", "-"))

    def _pass_on(self, event: Event) -> None:
        """Write the event as a line of JSON. A verdict has its finding as text, and its reason as pytest prints it."""
        if self._events is None:
            return
        line = event.as_json()
        if isinstance(event, RequirementJudged):
            finding = event.finding
            line["standing"], line["reason"] = str(finding.standing), one_line(finding.reason)
            line["text"] = as_text(render_finding(finding, self._collector.results.requirement(finding.requirement)))
        self._events.write(json.dumps(line).encode() + b"\n")
        self._events.flush()

    def _draw_failures(self, results: Results) -> None:
        try:
            picture_failures(results, self._run_dir)
        except Exception as error:  # noqa: BLE001  a picture only helps to debug, so a run does not fail without it
            print_error(f"a violation has no picture: {error}")

    def _conclude(self, failed: Exception | None) -> ExitCode:
        results = self._collector.results
        code = exit_code_of_results(results)
        if failed is not None:
            own_history = isinstance(failed, HistoryError)  # this run wrote it, so a bug of kafkatrial damaged it
            code = ExitCode.INTERNAL if own_history else exit_code_of(failed) or ExitCode.INTERNAL
        results = results.concluded(int(code), code.meaning)
        write_results(results, self._run_dir)
        write_junit(results, self._run_dir)
        self._draw_failures(results)
        write_html(results, self._run_dir)
        show(self._console, render_results(results, self._run_dir))
        if failed is not None:
            report(failed, self._run_dir)
        return code
