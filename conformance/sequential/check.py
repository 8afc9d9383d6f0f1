"""The check of a sequential requirement: generate scripts, run each on every target, judge, shrink, confirm.

A requirement defines the scripts that test its promise and the fields of responses that it judges; the model defines
their expected values. Other fields are judged by other requirements, so that one bug does not fail all of them.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from hypothesis.strategies import SearchStrategy

from conformance.check_context import Check, CheckContext
from conformance.search import smallest, try_scripts
from conformance.sequential.basics import basic_failure
from conformance.sequential.connections import TargetDown
from conformance.sequential.differences import Severity, differences
from conformance.sequential.judging import VIOLATIONS, Deviation, Judges, Rank, deviations, judge, kind_of, where
from conformance.sequential.model import expected
from conformance.sequential.program import program, transcript
from conformance.sequential.response import Response
from conformance.sequential.routing import NotReady
from conformance.sequential.scripted_check import ScriptedCheck
from conformance.sequential.session import Session
from conformance.sequential.steps import BrokenRequest, RawBytes, Script, Step
from fixtures.clients.raw import UnsupportedApi
from fixtures.targets.target import Target
from linearizability.finding import Difference, Finding
from linearizability.judgement import Verdict

_WORST_LAST: Final = tuple(Severity)
_AUTHORITY: Final = "apache-kafka"
"""If the model has no expected value for a judged field, the responses of this kind of target decide."""


def judges(*fields: str, of: type[Step]) -> Judges:
    """Return the judged response fields of one kind of step. `|` joins several results."""
    return Judges({of: frozenset(fields)})


def judges_all(fields: Mapping[type[Step], str]) -> Judges:
    """Return the judged response fields, whose names are separated by spaces, by kind of step."""
    return Judges({step: frozenset(names.split()) for step, names in fields.items()})


@dataclass(slots=True)
class SharedScript:
    """The last responses of a target to a script that several requirements of one run judge."""

    _last: tuple[Target, Script, tuple[Response, ...]] | None = None
    _judged_by: set[str] = field(default_factory=set)

    def responses(self, requirement: str, target: Target, script: Script, session: Session) -> tuple[Response, ...]:
        """Return the responses. Run the script, unless another requirement has just run it on the same target."""
        known = self._last is not None and self._last[0] is target and self._last[1] == script
        if self._last is None or not known or requirement in self._judged_by:
            self._last = (target, script, session.run(script))
            self._judged_by.clear()
        self._judged_by.add(requirement)
        return self._last[2]


def sequential(
    scripts: SearchStrategy[Script],
    judged: Judges,
    *,
    cost: int = 1,
    ranks: frozenset[Rank] = VIOLATIONS,
    shared: SharedScript | None = None,
) -> Check:
    """Return the check of a requirement whose scripts are drawn from `scripts`.

    :param cost: time for one of these scripts, relative to an ordinary one; the number of scripts is divided by it.
    :param ranks: the ranks of deviations that are violations.
    :param shared: the last responses to a slow script that several requirements judge.
    """

    def check(context: CheckContext) -> Mapping[str, Finding]:
        with ExitStack() as stack:
            sessions = {target.name: stack.enter_context(_session(target, context)) for target in context.targets}
            runs = [_TargetRun(target, sessions[target.name], ranks) for target in context.targets]
            scripts_max = max(1, context.scripts_max // cost)
            _Experiment(replace(context, scripts_max=scripts_max), scripts, judged, runs, shared).run()
            return {run.target.name: run.finding for run in runs}

    return ScriptedCheck(check, scripts, cost)


def _session(target: Target, context: CheckContext) -> Session:
    """Return a session whose names differ from those of other requirements and of concurrent runs on this target."""
    return Session(target, f"{context.requirement_id.replace('/', '.')[:80]}-{time.time_ns():x}")


def _script_of_last_step(script: Script, down: TargetDown) -> tuple[Script, ...]:
    """Return a script of only the step with which a target went down.

    Return no script if the step is unknown, if its bytes depend on other steps, or if the script has no other step.
    """
    if down.step is None or len(script) == 1 or not isinstance(script.steps[down.step], BrokenRequest | RawBytes):
        return ()
    return (Script(script.steps[down.step : down.step + 1]),)


@dataclass(slots=True)
class _TargetRun:
    """State of the check on one target."""

    target: Target
    session: Session
    ranks: frozenset[Rank]
    """The ranks of deviations that are violations; after the first violation, only ranks that are at least as bad."""
    worst: Deviation | None = None
    """The worst deviation of the violating script, if the model shows one."""
    finding: Finding = field(default_factory=lambda: Finding(Verdict.OK))
    passed: set[Script] = field(default_factory=set)
    violating: Script | None = None
    goes_down: bool = False
    """Whether the violation is that the target goes down."""
    baseline: "_TargetRun | None" = None
    """The target whose response showed the violation, if the model left the judged field open."""

    @property
    def is_decided(self) -> bool:
        """Whether no further script runs on the target: it has a violation, is down or not ready, or lacks the API."""
        return self.finding.verdict is not Verdict.OK


@dataclass(slots=True)
class _Experiment:
    """The two phases of a check."""

    context: CheckContext
    scripts: SearchStrategy[Script]
    judged: Judges
    runs: list[_TargetRun]
    shared: SharedScript | None = None

    def run(self) -> None:
        try_scripts(
            self.scripts,
            seed_value=self.context.seed,
            scripts_max=self.context.scripts_max,
            attempt=self._on_every_target,
        )
        for run in self.runs:
            if run.violating is not None:
                self._block(run, run.violating)
            if run.violating is not None:
                self._shrink(run, run.violating)

    # --- phase 1: every script on every target

    def _on_every_target(self, script: Script) -> None:
        responses: dict[str, tuple[Response, ...]] = {}
        for run in self.runs:
            if not run.is_decided:
                self._attempt(run, script, responses)
        self._compare(script, responses)

    def _attempt(self, run: _TargetRun, script: Script, responses: dict[str, tuple[Response, ...]]) -> None:
        name = run.target.name
        done = run.finding.scripts + 1
        try:
            responses[name] = self._responses(run, script)
        except UnsupportedApi as error:
            run.finding = Finding(Verdict.NOT_APPLICABLE, str(error), scripts=done)
        except TargetDown as error:
            run.finding = self._judge_down(run, script, error, done)
        except NotReady as error:
            run.finding = self._unknown(run, script, str(error), done)
        else:
            found = self._judge(run, script, responses[name])
            run.finding = self._finding(run, script, found, done)
            if found.verdict is Verdict.VIOLATION:
                run.violating = script
                shown = deviations(run.session.pinned(script), responses[name], self.judged)
                run.worst = next(each for each in shown if each.rank in run.ranks)
                run.ranks = frozenset(rank for rank in run.ranks if rank <= run.worst.rank)
            else:
                run.passed.add(script)
        self.context.script_ran(name, done, self.context.scripts_max)

    def _responses(self, run: _TargetRun, script: Script) -> tuple[Response, ...]:
        if self.shared is None:
            return run.session.run(script)
        return self.shared.responses(self.context.requirement_id, run.target, script, run.session)

    def _judge(self, run: _TargetRun, script: Script, responses: Sequence[Response]) -> Finding:
        return judge(run.session.pinned(script), responses, self.judged, run.ranks)

    def _judge_down(self, run: _TargetRun, script: Script, down: TargetDown, done: int) -> Finding:
        """Judge a script during which the target went down: this is a violation if the target goes down again.

        Only the bytes that were sent last are repeated at first, because each attempt may require a restart.
        """
        run.goes_down = True
        for suspect in (*_script_of_last_step(script, down), script):
            found = self._run_again(run, suspect)
            if found.verdict is Verdict.VIOLATION:
                run.violating = suspect
                return self._finding(run, suspect, found, done)
        run.goes_down = False
        return self._unknown(run, script, f"went down while script {done} ran: {down}", done)

    def _unknown(self, run: _TargetRun, script: Script, reason: str, done: int) -> Finding:
        return Finding(Verdict.UNKNOWN, reason, scripts=done, program=self._program(run, script))

    def _finding(self, run: _TargetRun, script: Script, found: Finding, done: int) -> Finding:
        if found.verdict is Verdict.OK:
            return replace(run.finding, scripts=done)
        program = self._program(run, script)
        return replace(found, scripts=done, program=program, differences=run.finding.differences)

    def _program(self, run: _TargetRun, script: Script) -> str:
        return program(
            script, requirement=self.context.requirement_id, target=run.target.name, nodes=len(run.target.nodes)
        )

    # --- comparison of targets

    def _compare(self, script: Script, responses: Mapping[str, tuple[Response, ...]]) -> None:
        """Record the first difference of each severity between each target and the baseline.

        The baseline is Apache Kafka or, if it is not a target, the first target. A difference from Apache Kafka is a
        violation if `_decides` is true for it.
        """
        present = [run for run in self.runs if run.target.name in responses]
        if len(present) < 2:
            return
        baseline = next((run for run in present if run.target.kind == _AUTHORITY), present[0])
        for run in present:
            if run is baseline:
                continue
            ours, theirs = responses[run.target.name], responses[baseline.target.name]
            found = differences(baseline.target.name, script.steps, ours, theirs)
            self._record_differences(run, found)
            authority = baseline.target.kind == _AUTHORITY and run.target.kind != _AUTHORITY
            finding = self._judge_differences(script, found)
            if authority and finding.verdict is Verdict.VIOLATION and not run.is_decided:
                run.violating, run.baseline = script, baseline
                run.passed.discard(script)
                finding = self._finding(run, script, finding, run.finding.scripts)
                run.finding = replace(finding, beside=baseline.target.name)

    def _record_differences(self, run: _TargetRun, found: list[Difference]) -> None:
        known = {one.severity for one in run.finding.differences}
        new = [next((one for one in found if one.severity == severity), None) for severity in Severity]
        fresh = tuple(one for one in new if one is not None and one.severity not in known)
        run.finding = replace(run.finding, differences=run.finding.differences + fresh)

    def _decides(self, script: Script, difference: Difference) -> bool:
        """Whether the field that differs is judged, has no expected value in the model, and is not cosmetic."""
        step = script.steps[difference.step - 1]
        name = difference.here.partition(" ")[0]
        expectation = expected(script)[difference.step - 1].get(name)
        return (
            difference.severity != Severity.WIRE_COSMETIC
            and name in self.judged.of(kind_of(step))
            and expectation is None
        )

    def _judge_differences(self, script: Script, found: list[Difference]) -> Finding:
        """Judge a script by its differences from the baseline: a violation if `_decides` is true for one of them.

        The finding has the worst of these.
        """
        deciding = [one for one in found if self._decides(script, one)]
        if not deciding:
            return Finding(Verdict.OK)
        difference = max(deciding, key=lambda one: _WORST_LAST.index(one.severity))
        here = where(difference.step, kind_of(script.steps[difference.step - 1]))
        return Finding(
            Verdict.VIOLATION,
            f"{here}: {difference.here}, but {difference.there} on {difference.other_target}",
            expected=f"{here}: {difference.there}",
            actual=f"{here}: {difference.here}",
        )

    # --- phase 2: one target, one violation

    def _block(self, run: _TargetRun, violating: Script) -> None:
        """Withdraw a violation if a plain request fails in the same way, and another requirement reported this."""
        known = self.context.basic_failures
        failure = None if run.worst is None else basic_failure(run.target.name, run.session, run.worst, known)
        if failure is None:
            return
        reporter = known.setdefault(failure, self.context.requirement_id)
        if reporter != self.context.requirement_id:
            run.violating = None
            reason = f"blocked by {reporter}, since a plain {failure.request} fails in the same way: {run.worst}"
            blocked = self._unknown(run, violating, reason, run.finding.scripts)
            run.finding = replace(blocked, blocked_by=reporter)

    def _shrink(self, run: _TargetRun, violating: Script) -> None:
        deadline = time.monotonic() + self.context.shrink_seconds

        def violates(script: Script) -> bool:
            return self._run_again(run, script).verdict is Verdict.VIOLATION

        script = smallest(
            self.scripts,
            seed_value=self.context.seed,
            scripts_max=self.context.scripts_max,
            first=violating,
            passed=run.passed,
            violates=violates,
            time_is_up=lambda: time.monotonic() > deadline,
        )
        confirmed = self._run_again(run, script)
        if confirmed.verdict is Verdict.VIOLATION:
            run.finding = replace(
                run.finding,
                reason=confirmed.reason,
                expected=confirmed.expected,
                actual=confirmed.actual,
                program=self._program(run, script),
                steps=confirmed.steps,
            )
        else:
            run.finding = replace(run.finding, flaky=True)

    def _run_again(self, run: _TargetRun, script: Script) -> Finding:
        """Run a script again and judge it as before: by the model, the baseline, or whether the target goes down."""
        if not self.context.revive(run.target):
            return Finding(Verdict.UNKNOWN, "the target does not respond, and cannot be started again")
        run.session.reconnect()
        try:
            responses = run.session.run(script)
            steps = "\n".join(transcript(script, responses, expected(run.session.pinned(script))))
            if run.baseline is None:
                return replace(self._judge(run, script, responses), steps=steps)
            theirs = run.baseline.session.run(script)
            found = differences(run.baseline.target.name, script.steps, responses, theirs)
            return replace(self._judge_differences(script, found), steps=steps)
        except TargetDown as error:
            if run.goes_down:
                return Finding(Verdict.VIOLATION, f"the broker went down, each time that the script ran: {error}")
            return Finding(Verdict.UNKNOWN, str(error))
        except (NotReady, UnsupportedApi) as error:
            return Finding(Verdict.UNKNOWN, str(error))
