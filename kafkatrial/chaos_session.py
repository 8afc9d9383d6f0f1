"""Session of `kafkatrial chaos`: checked options, run and summary. Also the replay of a saved failure."""

import difflib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import chaos.targets  # noqa: F401  registers the simulation, which is rejected by name
from chaos.campaign.counterexample import SIMULATION
from chaos.campaign.interruption import interruptible
from chaos.campaign.saved import load_failure
from chaos.live.campaign import NothingRunsError, Plan, run_chaos
from chaos.live.events import ChaosStarted, RoundJudged, RoundNotRun
from chaos.live.fault_kinds import KINDS
from chaos.live.findings import finding
from chaos.live.session import remove_unsupported_faults
from chaos.replay import lines_of, replay
from conformance.events import Event
from conformance.trial.trial import Trial
from fixtures.disk.kinds import DiskKind
from fixtures.targets.catalogue import target_kinds
from kafkatrial.accompanying import CompanionFactory, Companions
from kafkatrial.chaos_progress import ChaosProgress
from kafkatrial.chaos_results import ChaosResults
from kafkatrial.chaos_tables import render_chaos
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import UsageError, print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.run_directory import make_run_directory
from kafkatrial.saved_histories import SUMMARY_FILE
from kafkatrial.seeds import generate_seed
from linearizability.drafts import draft_of
from linearizability.history.run import RUN_FILE
from linearizability.printable import printable
from linearizability.temporary_folder import TemporaryFolder

CHAOS = Path(".kafkatrial") / "chaos"
FAILURES = CHAOS / "failures"
_TARGETS = ("reference", "apache-kafka")


@dataclass(frozen=True, slots=True)
class ChaosChoices:
    """The options of the command line."""

    targets: tuple[str, ...]
    minutes: float | None
    rounds: int | None
    seed: int | None
    kinds: tuple[str, ...]
    keep_going: bool
    shrink_minutes: float
    out: Path | None
    sought: str | None = None
    history_topic: str | None = None
    history_bootstrap: str | None = None
    disk: DiskKind | None = None
    load: int = 1


def plan_chaos(choices: ChaosChoices) -> Plan:
    """Check every choice before anything starts, create the run directory, and return the plan.

    Raises:
        UsageError: a choice is wrong.
        UnknownFindingError: there is no such finding.
        UnknownTargetError: there is no such target.
    """
    if choices.minutes is not None and not 0 < choices.minutes < float("inf"):
        raise UsageError(f"--minutes: {choices.minutes:g} is not a positive number of minutes")
    for kind in choices.kinds:
        if kind not in KINDS:
            close = difflib.get_close_matches(kind, KINDS, n=1)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(KINDS)}"
            raise UsageError(f"--fault: there is no kind of fault {kind!r}; {meant}")
    for name in choices.targets:
        remove_unsupported_faults(name, Trial(), choices.disk)
    sought = None if choices.sought is None else finding(choices.sought)
    now = datetime.now().astimezone()
    seed = generate_seed() if choices.seed is None else choices.seed
    out = make_run_directory(choices.out or CHAOS / f"{now:%Y%m%dT%H%M%S}-{seed}", now=now, seed=seed)
    return Plan(
        targets=choices.targets,
        seed=seed,
        out=out,
        failures=FAILURES if choices.out is None else out / "failures",
        kinds=sought.kinds if sought is not None else choices.kinds or tuple(KINDS),
        rounds_max=choices.rounds or (None if choices.minutes or sought else 1),
        seconds_max=None if choices.minutes is None else choices.minutes * 60,
        failures_max=None if choices.keep_going else 1,
        shrink_seconds_max=choices.shrink_minutes * 60,
        sought=sought,
        disk=choices.disk,
        load=choices.load,
    )


def parse_disk_kind(name: str | None) -> DiskKind | None:
    """Return the kind of disk of that name; None without a name. Raises `UsageError` if there is no such kind."""
    if name is None:
        return None
    if name in {*DiskKind}:
        return DiskKind(name)
    raise UsageError(f"--disk: there is no kind of disk {name!r}; there are {', '.join(DiskKind)}")


def installed_targets() -> tuple[str, ...]:
    """Return which of the targets `reference` and `apache-kafka` are installed on this machine."""
    kinds = {row.kind: row for row in target_kinds()}
    return tuple(name for name in _TARGETS if kinds[name].is_installed((*kinds[name].versions, "")[0]))


class ChaosRunner:
    """Runner of a plan. `run` returns the exit code; histories and a summary are in the run directory."""

    def __init__(
        self, plan: Plan, *, as_json: bool, companions: Sequence[CompanionFactory] = (), is_live: bool = False
    ) -> None:
        self._plan = plan
        self._companions = tuple(companions)
        self._is_live = is_live
        self._as_json = as_json
        self._console = stdout_console(quiet=as_json)
        self._results = ChaosResults()

    def run(self) -> ExitCode:
        """Run to the end, or until an interruption, print the result, and return the exit code."""
        results = self._results
        with interruptible(), ChaosProgress(self._console) as progress:
            companions = Companions((*self._companions, *([partial(_live_view, progress)] if self._is_live else ())))

            def handle(event: Event) -> None:
                results.handle(event)
                if isinstance(event, ChaosStarted | RoundJudged | RoundNotRun):
                    self._write_summary()  # so that a killed session leaves its results
                progress.handle(event, results)
                companions.handle(event)

            try:
                run_chaos(self._plan, handle)
            except KeyboardInterrupt:
                print_error(self._interrupted())
            except NothingRunsError as error:
                print_error(str(error))
        self._write_summary()
        if self._as_json:
            print(json.dumps(results.as_json()))  # noqa: T201  the command's output
        else:
            show(self._console, render_chaos(results, self._plan))
        return ExitCode.INTERNAL if companions.failed and not results.exit_code else results.exit_code

    def _write_summary(self) -> None:
        with draft_of(self._plan.out / SUMMARY_FILE) as draft:
            draft.write_text(json.dumps(self._results.as_json(), indent=1) + "\n", encoding="utf-8")

    def _interrupted(self) -> str:
        if not any(self._plan.out.glob(f"*/{RUN_FILE}")):
            return "interrupted; no round has run"
        return f"interrupted; all faults are healed, and the histories so far are in {self._plan.out}"


def _live_view(progress: ChaosProgress, run_dir: Path) -> AbstractContextManager[object]:
    """Create the run directory, and return a live view of the round, computed by Spark."""
    from reports.spark.live import LiveRun
    from reports.spark.session import LOG_NAME, spark_session

    run_dir.mkdir(parents=True, exist_ok=True)
    return LiveRun(run_dir, lambda: spark_session("local[*]", log=run_dir / LOG_NAME), progress.note)


def make_companions(choices: ChaosChoices) -> Sequence[CompanionFactory]:
    """Create the history topic, if one is requested, and return the factory of the companion that sends to it.

    This function is called before the first round. The live view is added by `ChaosRunner`.

    Raises:
        UsageError: one of the two options of the history topic is missing.
        HistoryTopicError: the cluster of the topic does not respond.
    """
    if choices.history_topic is None:
        if choices.history_bootstrap is not None:
            raise UsageError("--history-bootstrap: name the topic with --history-topic")
        return ()
    if choices.history_bootstrap is None:
        raise UsageError(
            "--history-topic: name the cluster of the topic with --history-bootstrap; it must not be the target"
        )
    from fixtures.clients.history_topic import HistoryTopic, SentHistory

    topic = HistoryTopic(choices.history_bootstrap, choices.history_topic)
    return (partial(SentHistory, topic=topic),)


def run_again(directory: Path, targets: list[str] | None, disk: DiskKind | None = None) -> ExitCode:
    """Replay a saved failure, on its own target unless others are given.

    Return VIOLATION if the failure or another violation occurs on any target, else OK. Raises `SavedFailureError` and
    `TrialNotApplicableError`.
    """
    failure = load_failure(directory)
    console = stdout_console(quiet=False)
    code = ExitCode.OK
    with interruptible(), TemporaryFolder() as run_dir:
        for number, target in enumerate(targets or [failure.target or SIMULATION]):
            replayed = replay(failure, target, Path(run_dir) / str(number), disk)
            fails = failure.name in replayed.shown
            standing = "still fails" if fails else "did not fail this time (fixed, or flaky)"
            console.print(
                printable("\n".join((f"{target}: {failure.name} {standing}", *lines_of(replayed)[1:-1]))),
                soft_wrap=True,
                highlight=False,
            )
            code = ExitCode.VIOLATION if fails or replayed.violations else code
    return code
