"""Execution of requirements on targets, as a stream of events.

Targets are started one after the other, and stopped however the run ends. Each requirement is checked on all targets
to which it applies, with the same scripts. Decisions (whether it applies, whether a violation is expected, the verdict)
are pure functions; the module's IO is the targets and the run directory. It does not depend on any event handler.

- Requirements that share a cluster (`side_by_side.py`) are checked first, several at a time. Only ok and not applicable
  are final there: for any other verdict the requirement is checked again, alone, with the same scripts. A violation
  that is not reproduced is checked several times, because a broker may fail in few of its responses only.
- A check runs in a separate thread, so that its progress is reported while it works.
- A target that has died is started again before the next requirement; if that fails, its remaining verdicts are
  *unknown*.
- If a check raises an error that is a bug of kafkatrial, the verdict is *unknown*, too, and the error is raised again
  after the other requirements have been checked. `HistoryError` and `OSError` end the run at once.
- If a check raises `TargetError`, the verdict is *unknown* if links of its targets have failed; else the run ends.
- KeyboardInterrupt ends the run: the targets are stopped, and the last event marks the run as not complete.
"""

import hashlib
import shlex
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from conformance.applicability import reason_not_applicable
from conformance.attribution import attributed, interference_with, is_ok, reason_of
from conformance.check_context import BasicFailure, CheckContext
from conformance.events import (
    Event,
    RequirementJudged,
    RequirementStarted,
    RunEnded,
    RunStarted,
    ScriptRan,
    TargetStarted,
    TargetStarting,
)
from conformance.expectations import ExpectedViolation
from conformance.failures import save_failure
from conformance.liveness import responds
from conformance.profiles import Profile
from conformance.reproducible import remove_local_constants
from conformance.requirements.requirement import Requirement
from conformance.side_by_side import Result, SideBySide, doubted, shares_a_cluster
from conformance.targets import starts_nodes
from fixtures.clients.stage import THREADS
from fixtures.targets.connection_settings import client_settings_option
from fixtures.targets.recipe_file import targets_option
from fixtures.targets.target import ExistingCluster, Target, TargetError, reasons_for_lacking
from linearizability.finding import Finding
from linearizability.history.errors import HistoryError
from linearizability.judgement import Verdict
from linearizability.printable import one_line

Expectations = Mapping[str, Mapping[str, ExpectedViolation]]
"""Expected violations by target name and requirement id."""

_INTERRUPTED_CHECK_TIMEOUT_S: Final = 30.0
_REPETITIONS_MAX: Final = 20
_REPETITION_S: Final = 15.0
"""Limits of the repetition of a check alone that does not reproduce a violation beside others: number, and seconds."""


class _Interrupted(Exception):  # noqa: N818
    """Exception that ends the thread of a check, at its first report of progress after the run was interrupted."""


def run_requirements(
    targets: Sequence[Target],
    requirements: Sequence[Requirement],
    *,
    seed: int,
    profile: Profile,
    run_dir: Path,
    expectations: Expectations | None = None,
) -> Generator[Event, None, None]:
    """Start the targets, check every requirement, stop the targets; yield events.

    :param targets: not yet started.
    :param seed: seed of the run. Each requirement has a seed derived from it, so that a requirement that runs alone
        has the same scripts.
    :param expectations: known violations. If a requirement is ok although its violation is expected, the reason of its
        finding states this.

    Raises `TargetError` if a target does not start; the targets that were started are stopped. If checks raised errors
    that are bugs of kafkatrial, the first of them is raised at the end.
    """
    remove_local_constants()
    run = _Run(tuple(targets), tuple(requirements), seed, profile, run_dir, expectations or {})
    started = time.monotonic()
    yield RunStarted(
        run_dir=str(run_dir),
        seed=seed,
        profile=profile.name,
        targets=tuple(target.name for target in targets),
        requirements=tuple(requirement.id for requirement in requirements),
    )
    complete = False
    try:
        yield from run.start_targets()
        yield from run.check_side_by_side()
        for requirement in requirements:
            if requirement.id not in run.judged:
                yield from run.check_alone(requirement)
        if run.errors:
            raise run.errors[0]
        complete = True
    except KeyboardInterrupt:
        run.interrupt()
    finally:
        run.stop_targets()
    yield RunEnded(complete=complete, seed=seed, seconds=time.monotonic() - started)


def seed_of(run_seed: int, requirement_id: str) -> int:
    """Return the seed of a requirement, or of a family, in a run. The other requirements do not change this seed."""
    digest = hashlib.sha256(f"{run_seed} {requirement_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def reproduce_command(nodes: Mapping[str, int], seed: int, profile: str, requirement_id: str) -> str:
    """Return the command line that reproduces a violation.

    :param nodes: by name of the target, its number of nodes. If the targets that kafkatrial starts have different
        numbers, the command has no option `--nodes`.
    """
    words = ["kafkatrial", "run", *targets_option(), *client_settings_option()]
    for target in nodes:
        words += ["--target", target]
    counts = {count for target, count in nodes.items() if starts_nodes(target)}
    if len(counts) == 1:
        words += ["--nodes", str(counts.pop())]
    words += ["--seed", str(seed)]
    if profile != "ci":
        words += ["--profile", profile]
    return shlex.join([*words, requirement_id])


@dataclass(slots=True)
class _Run:
    """A run: its parameters and its state."""

    targets: tuple[Target, ...]
    requirements: tuple[Requirement, ...]
    seed: int
    profile: Profile
    run_dir: Path
    expectations: Expectations
    failures: int = 0
    down: dict[str, str] = field(default_factory=dict)
    """Why a target could not be started again, by name."""
    interference: dict[str, str] = field(default_factory=dict)
    """Failures on the links of a target before it was started again, by the name of the target."""
    basic_failures: dict[BasicFailure, str] = field(default_factory=dict)
    """By failure of a plain request, the requirement that reported the failure."""
    errors: list[Exception] = field(default_factory=list)
    """Errors that checks raised: bugs of kafkatrial."""
    judged: set[str] = field(default_factory=set)
    """Ids of the requirements with a final verdict."""
    doubts: dict[tuple[str, str], str] = field(default_factory=dict)
    """Failures that a check beside others found, by requirement id and target name.

    They are reasons to doubt an *ok* of the later check alone (`doubted`).
    """
    interrupted: threading.Event = field(default_factory=threading.Event)
    checking: Sequence[threading.Thread] = ()

    # --- targets

    def start_targets(self) -> Iterator[Event]:
        for target in self.targets:
            yield TargetStarting(target.name, target.node_count or 0)
            began = time.monotonic()
            target.start()
            warning = target.warning if isinstance(target, ExistingCluster) else ""
            seconds = time.monotonic() - began
            yield TargetStarted(target.name, len(target.nodes), seconds, dict(target.versions), warning)

    def stop_targets(self) -> None:
        for target in self.targets:
            target.stop()

    def revive(self, target: Target) -> bool:
        """Start a target again if it does not respond. Returns whether it responds."""
        if target.name in self.down:
            return False
        if responds(target):
            return True
        self.interference.setdefault(target.name, interference_with(target))
        target.stop()
        try:
            target.start()
        except TargetError as error:
            self.down[target.name] = f"it went down and did not start again: {error}"
        return target.name not in self.down

    def interrupt(self) -> None:
        """Stop the targets, and wait for the running checks, which end at their next report of progress."""
        self.interrupted.set()
        for target in self.targets:
            target.stop()
        deadline = time.monotonic() + _INTERRUPTED_CHECK_TIMEOUT_S
        for thread in self.checking:
            thread.join(max(0.0, deadline - time.monotonic()))

    # --- requirements side by side

    def check_side_by_side(self) -> Iterator[Event]:
        """Check the requirements that share the cluster; yield the final verdicts in the order of the requirements."""
        shared = [each for each in self.requirements if self._shares_the_cluster(each)]
        if len(shared) < 2 or not all(target.stage is THREADS for target in self.targets):
            return
        queue: SimpleQueue[Event | None] = SimpleQueue()
        checks = SideBySide(
            [(each, self._context(each, self._applicable(each), queue.put)) for each in shared],
            on_done=lambda: queue.put(None),
            interrupted=self.interrupted,
        )
        self.checking = checks.start()
        try:
            for requirement in shared:
                yield self._started(requirement)
                while requirement.id not in checks.results:
                    if (event := queue.get()) is not None:
                        yield event
                yield from self._conclude(requirement, checks.results[requirement.id])
        except BaseException:
            self.interrupted.set()
            raise
        for target in self.targets:
            self.revive(target)

    def _shares_the_cluster(self, requirement: Requirement) -> bool:
        """Whether to check a requirement beside others.

        A requirement with an expected violation is only checked alone: a violation that is found beside
        others must be found again alone anyway.
        """
        expected = any(requirement.id in self.expectations.get(target.name, {}) for target in self.targets)
        return shares_a_cluster(requirement) and bool(self._applicable(requirement)) and not expected

    def _conclude(self, requirement: Requirement, result: Result) -> Iterator[Event]:
        """Judge a requirement by its result beside others, or keep the doubts for the check alone."""
        if not result.is_final:
            self.doubts |= {(requirement.id, target): doubt for target, doubt in result.doubts.items()}
            return
        for target in self.targets:
            if target.name in result.findings:
                yield self._judged(requirement, target, result.findings[target.name], result.seconds)
            else:
                yield self._not_run(requirement, target, self._reason_not_run(requirement, target) or "")
        self.judged.add(requirement.id)

    # --- one requirement

    def check_alone(self, requirement: Requirement) -> Iterator[Event]:
        """Check a requirement while no other is checked."""
        yield self._started(requirement)
        reasons = {target.name: self._reason_not_run(requirement, target) for target in self.targets}
        applicable = [target for target in self.targets if reasons[target.name] is None]
        began = time.monotonic()
        findings: dict[str, Finding] = {}
        if applicable:
            yield from self._check(requirement, applicable, findings)
        seconds = time.monotonic() - began
        for target in self.targets:
            finding = findings.get(target.name)
            if finding is None:
                yield self._not_run(requirement, target, reasons[target.name] or "")
            else:
                interference = self.interference.pop(target.name, "") or interference_with(target)
                finding = doubted(finding, self.doubts.get((requirement.id, target.name), ""))
                yield self._judged(requirement, target, attributed(finding, interference), seconds)
        self.judged.add(requirement.id)
        for target in applicable:
            self.revive(target)

    def _check(
        self, requirement: Requirement, applicable: list[Target], findings: dict[str, Finding]
    ) -> Iterator[Event]:
        """Check a requirement, and add the finding of each target; after an error, undecided targets are unknown."""
        try:
            findings |= yield from self._run_check(requirement, applicable)
            yield from self._repeat_doubtful(requirement, applicable, findings)
        except TargetError as error:
            by_links = self._unknown_by_links(applicable, error)
            findings |= {
                target.name: by_links[target.name] for target in self._undecided(requirement, applicable, findings)
            }
        except (HistoryError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - it is raised when the other requirements are checked
            self.errors.append(error)
            unknown = Finding(Verdict.UNKNOWN, f"internal error: {type(error).__name__}: {one_line(str(error))}")
            findings |= {target.name: unknown for target in self._undecided(requirement, applicable, findings)}

    def _repeat_doubtful(
        self, requirement: Requirement, applicable: list[Target], findings: dict[str, Finding]
    ) -> Iterator[Event]:
        """Repeat a check that does not reproduce a violation beside others, because a broker may fail rarely."""
        deadline = time.monotonic() + _REPETITION_S
        for _ in range(_REPETITIONS_MAX):
            doubtful = self._undecided(requirement, applicable, findings)
            if not doubtful or time.monotonic() > deadline:
                return
            # all that are ok, because the responses of one target may be compared with those of another
            peers = [target for target in applicable if is_ok(findings.get(target.name))]
            repeated = yield from self._run_check(requirement, peers)
            findings |= {target.name: repeated[target.name] for target in doubtful}

    def _undecided(
        self, requirement: Requirement, applicable: list[Target], findings: Mapping[str, Finding]
    ) -> list[Target]:
        """Return the targets without a finding, and those whose violation beside others is not reproduced alone."""

        def is_undecided(target: Target) -> bool:
            found = findings.get(target.name)
            return found is None or found is not doubted(found, self.doubts.get((requirement.id, target.name), ""))

        return [*filter(is_undecided, applicable)]

    def _started(self, requirement: Requirement) -> RequirementStarted:
        return RequirementStarted(requirement.id, len(self.judged) + 1, len(self.requirements))

    def _applicable(self, requirement: Requirement) -> list[Target]:
        return [target for target in self.targets if self._reason_not_run(requirement, target) is None]

    def _unknown_by_links(self, targets: list[Target], error: TargetError) -> dict[str, Finding]:
        """Return unknown findings if links have failed, for example while a fault was healed; else raise the error."""
        self.interference |= {target.name: found for target in targets if (found := interference_with(target))}
        if self.interference.keys().isdisjoint(target.name for target in targets):
            raise error
        return {target.name: Finding(Verdict.UNKNOWN, str(error)) for target in targets}

    def _reason_not_run(self, requirement: Requirement, target: Target) -> str | None:
        """Return why a requirement cannot be checked on a target: it is down, or lacks something; None if it can."""
        return self.down.get(target.name) or reason_not_applicable(
            requirement,
            capabilities=target.capabilities,
            version=target.version,
            nodes=len(target.nodes),
            reasons=reasons_for_lacking(target),
        )

    def _run_check(self, requirement: Requirement, targets: list[Target]) -> Generator[Event, None, dict[str, Finding]]:
        queue: SimpleQueue[Event | Mapping[str, Finding] | BaseException] = SimpleQueue()
        context = self._context(requirement, targets, queue.put)

        def work() -> None:
            try:
                queue.put(requirement.check(context))
            except BaseException as error:  # noqa: BLE001 - it is raised in the engine's thread
                queue.put(error)

        thread = threading.Thread(target=work, name=f"check {requirement.id}", daemon=True)
        self.checking = (thread,)
        thread.start()
        while True:
            match queue.get():
                case Event() as event:
                    yield event
                case BaseException() as error:
                    raise error
                case findings:
                    return dict(findings)

    def _context(
        self,
        requirement: Requirement,
        targets: list[Target],
        report: Callable[[Event], None],
    ) -> CheckContext:
        def script_ran(target: str, done: int, planned: int) -> None:
            if self.interrupted.is_set():
                raise _Interrupted
            report(ScriptRan(requirement.id, target, done, planned))

        return CheckContext(
            requirement_id=requirement.id,
            targets=targets,
            seed=seed_of(self.seed, requirement.family or requirement.id),
            scripts_max=self.profile.scripts_max,
            shrink_seconds=self.profile.shrink_seconds,
            history_dirs={target.name: self._history_dir(requirement, target) for target in targets},
            script_ran=script_ran,
            revive=self.revive,
            basic_failures=self.basic_failures,
        )

    def _history_dir(self, requirement: Requirement, target: Target) -> Path:
        return self.run_dir / "histories" / target.name.replace(":", "-") / requirement.id.replace("/", "-")

    # --- verdicts

    def _not_run(self, requirement: Requirement, target: Target, reason: str) -> RequirementJudged:
        verdict = Verdict.UNKNOWN if target.name in self.down else Verdict.NOT_APPLICABLE
        level = str(requirement.level)
        return RequirementJudged(Finding(verdict, reason, requirement=requirement.id, level=level, target=target.name))

    def _judged(self, requirement: Requirement, target: Target, finding: Finding, seconds: float) -> RequirementJudged:
        expected = self.expectations.get(target.name, {})
        known = expected.get(finding.blocked_by if finding.verdict is Verdict.UNKNOWN else requirement.id)
        failure_dir = self.run_dir / "failures" / str(self.failures + 1)
        violated = finding.verdict is Verdict.VIOLATION
        finding = replace(
            finding,
            requirement=requirement.id,
            level=str(requirement.level),
            target=target.name,
            expected_violation=known is not None,
            reason=reason_of(finding, known),
            seconds=seconds,
            reproduce=self._reproduce(requirement, finding, target),
            failure_dir=str(failure_dir) if violated else "",
        )
        if violated:
            self.failures += 1
            save_failure(failure_dir, requirement, finding)
        return RequirementJudged(finding)

    def _reproduce(self, requirement: Requirement, finding: Finding, tried: Target) -> str:
        if finding.verdict is Verdict.OK:
            return ""
        names = (tried.name, finding.beside)
        nodes = {target.name: len(target.nodes) for target in self.targets if target.name in names}
        return reproduce_command(nodes, self.seed, self.profile.name, requirement.id)
