"""Check of a concurrent requirement: run scripts on a target, judge their history, and shrink a violating script.

All scripts of a requirement are recorded in one history, which is judged as a whole. Requirements of one family share a
history, since a script that kills brokers takes half a minute. If the history decides nothing (*unknown*), the scripts
run once more.

After a violation, the scripts whose topics the evidence names (all scripts, if it names none) run again, each alone in
its own directory, until one of them reproduces the violation: its own history has a violation. That script is shrunk
within the time that the profile allows. If no single script reproduces the violation, the violation is *flaky*. It
still fails the requirement, because it was in the history.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from pathlib import Path

from hypothesis.strategies import SearchStrategy

from conformance.check_context import Check, CheckContext
from conformance.concurrent.history_checks import HistoryCheck, HistoryFinding
from conformance.concurrent.program import program_of
from conformance.concurrent.run import HistoryRun
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.search import scripts_of, smallest
from conformance.trial.document import document
from conformance.trial.trial import ClusterSettings, Trial
from fixtures.targets.target import Target
from linearizability.check import judge
from linearizability.finding import Finding
from linearizability.history.reader import open_history
from linearizability.judgement import Judgement, Verdict

SCRIPTS_DIVISOR = 5
"""Default of `Family.divisor`: a concurrent script takes seconds, a sequential one a tenth of a second."""
FAULT_SCRIPTS_DIVISOR = 60
"""`Family.divisor` of scripts in which brokers are killed: each takes half a minute."""
RERUNS_MAX = 3
"""Maximum number of runs of one script to reproduce a violation. Only the first ignores the time limit."""


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    """The results of the checkers and of the history checks for one history."""

    judgement: Judgement
    findings: tuple[HistoryFinding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all results."""
        verdicts = {self.judgement.verdict, *(each.verdict for each in self.findings)}
        return next((each for each in (Verdict.VIOLATION, Verdict.UNKNOWN) if each in verdicts), Verdict.OK)

    @property
    def reason(self) -> str:
        """The first result with the worst verdict, in one line."""
        return next(iter(self._reasons()), "")

    def _reasons(self) -> Iterator[str]:
        for finding in self.findings:
            if finding.verdict is self.verdict:
                yield finding.text
        for anomaly in self.judgement.anomalies:
            if anomaly.verdict is self.verdict and anomaly.count:
                yield f"{anomaly.name} ({anomaly.count}): {anomaly.evidence[0].text if anomaly.evidence else ''}"
        if self.verdict is Verdict.UNKNOWN:
            yield from self.judgement.reasons

    @property
    def topics(self) -> frozenset[str]:
        """Topics with a violation."""
        anomalies = [anomaly for anomaly in self.judgement.anomalies if anomaly.verdict is Verdict.VIOLATION]
        named = {evidence.topic for anomaly in anomalies for evidence in anomaly.evidence}
        named |= {each.topic for each in self.findings if each.verdict is Verdict.VIOLATION}
        return frozenset(topic for topic in named if topic is not None)


def judge_with_history_checks(run_dir: Path, history_checks: Sequence[HistoryCheck] = ()) -> HistoryVerdict:
    """Judge the history of a run directory by the checkers and by a requirement's history checks."""
    history = open_history(run_dir)
    findings = tuple(found for check in history_checks for found in check(history))
    return HistoryVerdict(judge(run_dir), findings)


HistoryChecks = Callable[[Target], Sequence[HistoryCheck]]
Scripts = Callable[[Target], SearchStrategy[Trial]]


@dataclass(frozen=True, slots=True)
class RecordedScripts:
    """Scripts that were recorded in one history.

    :param run_dir: directory of the history.
    :param requirement_id: requirement whose check recorded the history.
    :param scripts: the scripts by topic.
    :param is_repeated: whether a previous history of these scripts decided nothing.
    """

    run_dir: Path
    requirement_id: str
    scripts: Mapping[str, Trial]
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """Scripts with one history, which is judged for one or several requirements.

    The requirements of a family have the same seed (`Requirement.family`). In a run, the first of them that is checked
    on a target records the history, and the others use it. If the first is checked again, it records another history.

    :param scripts: returns the strategy for a target; it may depend on the settings of the target.
    :param divisor: the profile's number of scripts is divided by it; at least one script is generated.
    """

    name: str
    scripts: Scripts
    divisor: int = SCRIPTS_DIVISOR
    _recorded: dict[tuple[Path, str], RecordedScripts] = field(default_factory=dict, repr=False)
    """Recorded scripts, by the directory of a target's histories in the run and the target's name."""

    def scripts_max(self, context: CheckContext) -> int:
        """Return the maximum number of scripts to generate for a check."""
        return max(1, context.scripts_max // self.divisor)

    def generate(self, context: CheckContext, target: Target) -> list[Trial]:
        """Return the scripts that a check runs on a target."""
        scripts_max = self.scripts_max(context)
        return scripts_of(self.scripts(target), seed_value=context.seed, scripts_max=scripts_max)

    def record(self, context: CheckContext, target: Target) -> RecordedScripts:
        """Return the recorded scripts of this family in a run; record them if needed. Raises `ScriptNotRunError`."""
        run_dir = context.history_dirs[target.name]
        recorded = self._recorded.get((run_dir.parent, target.name))
        if recorded is None or recorded.requirement_id == context.requirement_id:
            return self._record_in(run_dir, context, target, is_repeated=False)
        return recorded

    def record_again(self, context: CheckContext, target: Target) -> RecordedScripts:
        """Record the scripts once more, for this requirement and the following ones. Raises `ScriptNotRunError`."""
        return self._record_in(context.history_dirs[target.name] / "repeated", context, target, is_repeated=True)

    def _record_in(self, run_dir: Path, context: CheckContext, target: Target, *, is_repeated: bool) -> RecordedScripts:
        scripts = self._run(context, target, run_dir)
        recorded = RecordedScripts(run_dir, context.requirement_id, scripts, is_repeated)
        self._recorded[context.history_dirs[target.name].parent, target.name] = recorded
        return recorded

    def _run(self, context: CheckContext, target: Target, run_dir: Path) -> Mapping[str, Trial]:
        """Run the scripts, recording one history; return them by topic."""
        scripts = self.generate(context, target)
        scripts_by_topic: dict[str, Trial] = {}
        with HistoryRun(target, run_dir, context.seed) as run:
            for done, script in enumerate(scripts, start=1):
                scripts_by_topic[run.run(script)] = script
                context.script_ran(target.name, done, len(scripts))
        return scripts_by_topic


def concurrent_check(family: Family, history_checks: HistoryChecks = lambda _: ()) -> Check:
    """Return the check of a requirement, which judges the history of a family.

    :param history_checks: returns the history checks of the requirement for a target, beside those of the checkers.
    """

    def check(context: CheckContext) -> Mapping[str, Finding]:
        return {
            target.name: _Case(context, target, family, tuple(history_checks(target))).find()
            for target in context.targets
        }

    return check


@dataclass(slots=True)
class _Case:
    """Check of one requirement on one target."""

    context: CheckContext
    target: Target
    family: Family
    history_checks: tuple[HistoryCheck, ...]
    _rerun_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def find(self) -> Finding:
        try:
            recorded = self.family.record(self.context, self.target)
            result = judge_with_history_checks(recorded.run_dir, self.history_checks)
            if result.verdict is Verdict.UNKNOWN and not recorded.is_repeated:
                # A busy machine may have delayed requests until after a fault.
                recorded = self.family.record_again(self.context, self.target)
                result = judge_with_history_checks(recorded.run_dir, self.history_checks)
        except ScriptNotRunError as error:
            return Finding(Verdict.UNKNOWN, str(error))
        scripts_run = len(recorded.scripts)
        if result.verdict is not Verdict.VIOLATION:
            return Finding(result.verdict, result.reason, scripts=scripts_run, judgement=result.judgement)
        named = [script for topic, script in recorded.scripts.items() if topic in result.topics]
        return self._violation(result, named or list(recorded.scripts.values()), scripts_run)

    def _violation(self, result: HistoryVerdict, suspects: Sequence[Trial], scripts_run: int) -> Finding:
        """Return the finding, with the smallest script that reproduces the violation, or with the first suspect."""
        deadline = time.monotonic() + self.context.shrink_seconds
        reproducing = next((script for script in suspects if self._violates_again(script, deadline)), None)
        shown = suspects[0] if reproducing is None else self._smallest(reproducing, deadline)
        cluster = ClusterSettings(len(self.target.nodes))
        saved = replace(shown, cluster=cluster, requirement=self.context.requirement_id)
        return Finding(
            Verdict.VIOLATION,
            result.reason,
            scripts=scripts_run,
            expected="a history without this violation",
            actual=result.reason,
            program=program_of(saved, self.target.name),
            trial=document(saved, {"name": self.context.requirement_id, "text": result.reason}),
            flaky=reproducing is None,
            judgement=result.judgement,
        )

    def _smallest(self, first: Trial, deadline: float) -> Trial:
        """Return the smallest violating script found in time. Scripts that were generated before `first` do not run."""
        scripts = self.family.generate(self.context, self.target)
        return smallest(
            self.family.scripts(self.target),
            seed_value=self.context.seed,
            scripts_max=self.family.scripts_max(self.context),
            first=first,
            passed=tuple(takewhile(lambda script: script != first, scripts)),
            violates=self._violates,
            time_is_up=lambda: time.monotonic() >= deadline,
        )

    def _violates_again(self, script: Trial, deadline: float) -> bool:
        """Whether one of up to `RERUNS_MAX` runs of a script has a violation."""
        for attempt in range(RERUNS_MAX):
            if attempt and time.monotonic() >= deadline:
                return False
            if self._violates(script):
                return True
        return False

    def _violates(self, script: Trial) -> bool:
        """Run a script alone, in a new directory; return whether its history has a violation."""
        run_dir = self.context.history_dirs[self.target.name] / "again" / str(next(self._rerun_numbers))
        try:
            with HistoryRun(self.target, run_dir, self.context.seed) as run:
                run.run(script)
        except ScriptNotRunError:
            return False
        return judge_with_history_checks(run_dir, self.history_checks).verdict is Verdict.VIOLATION
