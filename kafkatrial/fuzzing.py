"""`kafkatrial fuzz`: plan, session, shrinking, summary and saved findings (docs/fuzzing.md)."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

import chaos.targets  # noqa: F401  registers the target `defective`
from chaos.campaign.interruption import interruptible
from conformance.fuzz.cluster import FuzzTarget
from conformance.fuzz.finding import FuzzFinding, load, save
from conformance.fuzz.health import Limits, limits_for
from conformance.fuzz.session import FuzzProgress, SessionPlan, SessionReport, run_session
from conformance.fuzz.shrinking import Replays
from fixtures.clients.messages import api_name
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import ProcessSupervision, ProcessTarget
from fixtures.targets.target import UnknownTargetError
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import UsageError, print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.run_directory import make_run_directory
from kafkatrial.seeds import generate_seed
from linearizability.judgement import Judgement, Verdict, in_report_order

FUZZ = Path(".kafkatrial") / "fuzz"
SUMMARY_NAME = "summary.json"
FINDINGS = "findings"
NODES = 3
_DEFAULT_SECONDS = 60.0
_PROGRESS_PERIOD_S = 10.0
_TITLES_MAX = 5
_NOT_JUDGED = Judgement(0, 0, (), ("the session was interrupted before its history was judged",))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits given on the command line; None for the limit of the target."""

    response_ms: float | None = None
    memory_mb: float | None = None

    def applied_to(self, limits: Limits) -> Limits:
        """Return the target's limits, overridden by these bounds."""
        return Limits(
            limits.response_s if self.response_ms is None else self.response_ms / 1000,
            limits.memory_bytes if self.memory_mb is None else int(self.memory_mb * 1_000_000),
        )


@dataclass(frozen=True, slots=True)
class FuzzChoices:
    """The options of the command line."""

    target: str
    minutes: float | None
    seconds: float | None
    seed: int | None
    keep_going: bool
    shrink_minutes: float
    bounds: Bounds
    out: Path | None


@dataclass(frozen=True, slots=True)
class FuzzPlan:
    """The checked options and the seed; nothing is started."""

    target: str
    session: SessionPlan
    shrink_s: float
    out: Path


def plan_fuzzing(choices: FuzzChoices) -> FuzzPlan:
    """Check all options before anything starts, and create the run directory.

    Raises:
        UsageError: an option is invalid.
        UnknownTargetError: there is no such target, or requests to its listeners are not possible.
    """
    if choices.minutes is not None and choices.seconds is not None:
        raise UsageError("--minutes and --seconds name the same time; give one of them")
    seconds = _DEFAULT_SECONDS if choices.minutes is None else choices.minutes * 60
    seconds = seconds if choices.seconds is None else choices.seconds
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--minutes, --seconds: {seconds:g} seconds; give a positive number")
    limits = choices.bounds.applied_to(limits_for(new_cluster(choices.target).kind))
    now = datetime.now().astimezone()
    seed = generate_seed() if choices.seed is None else choices.seed
    out = make_run_directory(choices.out or FUZZ / f"{now:%Y%m%dT%H%M%S}-{seed}", now=now, seed=seed)
    session = SessionPlan(seed, seconds, limits, None if choices.keep_going else 1)
    return FuzzPlan(choices.target, session, choices.shrink_minutes * 60, out)


def new_cluster(name: str, work_dir: Path | None = None) -> FuzzTarget:
    """Return a cluster of three nodes, not started. Raises `UnknownTargetError`."""
    if name.partition(":")[0] == "bootstrap":
        raise UnknownTargetError(f"{name}: an existing cluster is not fuzzed; use reference or apache-kafka")
    target = parse_target(name, NODES, work_dir=work_dir, mesh=False)
    if not isinstance(target, ProcessTarget) or not isinstance(target.processes, ProcessSupervision):
        raise UnknownTargetError(f"{name}: only clusters of processes are fuzzed; use reference or apache-kafka")
    return target  # type: ignore[return-value]  # a cluster of processes has listeners and log directories too


class FuzzRunner:
    """Runner of a plan. `run` returns the exit code; history, findings and summary are in the run directory."""

    def __init__(self, plan: FuzzPlan, *, as_json: bool) -> None:
        self._plan = plan
        self._as_json = as_json
        self._console = stdout_console(quiet=as_json)
        self._reported_s = 0.0
        self._reported = 0
        self._report = SessionReport(FuzzProgress(), _NOT_JUDGED)
        self._shrunk: list[FuzzFinding] = []

    def run(self) -> ExitCode:
        """Run the session, shrink its findings, and write the summary; return the exit code."""
        plan = self._plan
        self._print(f"seed {plan.session.seed} on {plan.target}, for {plan.session.seconds:g} seconds")
        is_complete = False
        with interruptible():
            try:
                self._report = self._session()
                for number, finding in enumerate(self._report.progress.findings, 1):
                    self._shrunk.append(self._shrink(number, finding))
                is_complete = True
            except KeyboardInterrupt:
                print_error(self._save_interrupted())
            code = exit_code_of_session(self._report, self._findings, is_complete=is_complete)
            summary = _summary(plan, self._report, self._findings, code, is_complete=is_complete)
            (plan.out / SUMMARY_NAME).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        if self._as_json:
            print(json.dumps(summary))  # noqa: T201  the command's output
        else:
            self._conclude(self._report, code)
        return code

    @property
    def _findings(self) -> list[FuzzFinding]:
        """All findings: first those that have been shrunk, in their shrunk form, then the others."""
        return [*self._shrunk, *self._report.progress.findings[len(self._shrunk) :]]

    def _save_interrupted(self) -> str:
        """Save all findings again, because the interruption may have truncated a file, and return the message."""
        for number, finding in enumerate(self._findings, 1):
            save(self._path(number, finding), finding)
        found = f", and the findings are in {self._plan.out / FINDINGS}" if self._findings else ""
        return f"interrupted; the cluster is stopped, the history so far is in {self._plan.out}{found}"

    def _session(self) -> SessionReport:
        cluster = new_cluster(self._plan.target, self._plan.out / "cluster")
        with cluster:
            return run_session(cluster, self._plan.out / "run", self._plan.session, self._note)

    def _note(self, progress: FuzzProgress) -> None:
        self._report = SessionReport(progress, _NOT_JUDGED)
        is_due = progress.seconds - self._reported_s >= _PROGRESS_PERIOD_S
        if is_due or len(progress.findings) > self._reported:
            self._reported_s = progress.seconds
            self._print(f"  {progress.seconds:.0f} s: {_statistics(progress)}")
        for number, finding in enumerate(progress.findings[self._reported :], self._reported + 1):
            save(self._path(number, finding), finding)  # at once: the session and shrinking may be interrupted
            self._print(f"  {finding.symptom}: {finding.text}")
        self._reported = len(progress.findings)

    def _shrink(self, number: int, finding: FuzzFinding) -> FuzzFinding:
        """Reduce a finding to the fewest requests (unless the time for it is 0), save it in its file, and return it."""
        plan = self._plan
        path = self._path(number, finding)
        save(path, finding)
        if plan.shrink_s:
            self._print(f"looking for the cause of {finding.symptom} among {len(finding.requests)} requests")
            deadline_s = time.monotonic() + plan.shrink_s
            replays = Replays(finding, partial(new_cluster, plan.target), plan.session.limits, deadline_s)
            finding = replays.shrink()
            save(path, finding)
        self._print(_description(finding, path))
        return finding

    def _path(self, number: int, finding: FuzzFinding) -> Path:
        return self._plan.out / FINDINGS / f"{number}-{finding.symptom}.json"

    def _conclude(self, report: SessionReport, code: ExitCode) -> None:
        judgement = report.judgement
        self._print(f"{_statistics(report.progress)}; {judgement.records:,} records judged: {judgement.verdict}")
        for anomaly in in_report_order(judgement.anomalies):
            self._print(f"  {anomaly.verdict}: {anomaly.name} ({anomaly.count}); {anomaly.evidence[0].text}")
        plan = self._plan
        options = f"--target {plan.target} --seed {plan.session.seed} --seconds {plan.session.seconds:g}"
        self._print(f"seed {plan.session.seed} (kafkatrial fuzz {options}), history in {plan.out}: {code.meaning}")

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)


def exit_code_of_session(report: SessionReport, findings: list[FuzzFinding], *, is_complete: bool = True) -> ExitCode:
    """Return VIOLATION if the history or a finding is a violation, else INTERRUPTED, INCONCLUSIVE or OK.

    INTERRUPTED means that the session or the shrinking of its findings is not complete. INCONCLUSIVE means
    that the verdict is unknown, or that a late response was not reproduced.
    """
    verdict = report.judgement.verdict
    if verdict is Verdict.VIOLATION or any(finding.is_violation for finding in findings):
        return ExitCode.VIOLATION
    if not is_complete:
        return ExitCode.INTERRUPTED
    if verdict is Verdict.UNKNOWN or findings:
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK


def replay_finding(file: Path, target: str | None, bounds: Bounds) -> ExitCode:
    """Send the requests of a saved finding to a new cluster. Raises `NotAFindingError` and `UnknownTargetError`.

    :param target: the target; None for the target of the finding.
    """
    finding = load(file)
    finding = replace(finding, target=target or finding.target)
    limits = bounds.applied_to(limits_for(new_cluster(finding.target).kind))
    console: Console = stdout_console()
    with interruptible():
        index = Replays(finding, partial(new_cluster, finding.target), limits, 0.0).replay(finding.requests)
    shown = "does not occur (fixed, or flaky)" if index is None else f"occurs after request {index + 1}"
    show(console, f"{finding.target}: {finding.symptom} {shown} of {len(finding.requests)}")
    return ExitCode.OK if index is None else ExitCode.VIOLATION


def _statistics(progress: FuzzProgress) -> str:
    responses = progress.responses
    return (
        f"{progress.sent:,} requests of {len(progress.apis)} APIs; {responses.count:,} probes, the slowest took "
        f"{responses.slowest_own_s * 1000:.0f} ms; {progress.memory_bytes / 1e6:.0f} MB at most"
    )


def _description(finding: FuzzFinding, path: Path) -> str:
    confirmation = {None: "not replayed", True: "reproduced", False: "not reproduced"}[finding.is_confirmed]
    titles = [f"  {request.title}\n    {request.data[:64].hex()}" for request in finding.requests[:_TITLES_MAX]]
    more = len(finding.requests) - len(titles)
    rest = [f"  and {more} more"] if more else []
    head = f"{finding.symptom} on {finding.target} ({confirmation}): {finding.text}"
    return "\n".join([head, *titles, *rest, f"kafkatrial fuzz --replay {path}"])


def _summary(
    plan: FuzzPlan, report: SessionReport, findings: list[FuzzFinding], code: ExitCode, *, is_complete: bool
) -> Mapping[str, Any]:
    progress = report.progress
    return {
        "target": plan.target,
        "seed": plan.session.seed,
        "complete": is_complete,
        "seconds": progress.seconds,
        "requests": progress.sent,
        "requests_by_api": {api_name(key): count for key, count in sorted(progress.apis.items())},
        "probes": progress.responses.count,
        "slowest_response_ms": round(progress.responses.slowest_own_s * 1000, 3),
        "memory_bytes": progress.memory_bytes,
        "findings": [
            {
                "symptom": str(finding.symptom),
                "text": finding.text,
                "is_confirmed": finding.is_confirmed,
                "requests": [request.title for request in finding.requests],
            }
            for finding in findings
        ],
        "judgement": report.judgement.as_json(),
        "exit_code": int(code),
    }
