"""Check of a concurrent requirement: run scripts on a target, judge their history, and shrink a violating script.

All scripts of a requirement are recorded in one history, which is judged as a whole. Requirements of one family share a
history, since a script that kills brokers takes half a minute. After a violation the scripts that the evidence names
(all scripts, if it names none) run again, each alone in its own directory, until the history of one has a violation.
That script is shrunk for as long as the profile allows; a smaller script counts only if its own history has a
violation. A violation that no single script reproduces is *flaky*: it remains a violation, because it was in the
history.
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
"""Maximum number of runs of a script to reproduce a violation."""


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    """The results of the checkers and of the history checks for one history."""

    judgement: Judgement
    findings: tuple[HistoryFinding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all."""
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


def judge_history(run_dir: Path, history_checks: Sequence[HistoryCheck] = ()) -> HistoryVerdict:
    """Judge a run directory by the checkers and by a requirement's history checks."""
    history = open_history(run_dir)
    findings = tuple(found for check in history_checks for found in check(history))
    return HistoryVerdict(judge(run_dir), findings)


HistoryChecks = Callable[[Target], Sequence[HistoryCheck]]
Scripts = Callable[[Target], SearchStrategy[Trial]]


@dataclass(frozen=True, slots=True)
class RecordedScripts:
    """A recorded history: its directory, the requirement that it was recorded for, and its scripts by topic."""

    run_dir: Path
    requirement_id: str
    scripts: Mapping[str, Trial]


@dataclass(frozen=True, slots=True)
class Family:
    """Scripts with one history, which is judged for one or several requirements.

    The requirements of a family have the same seed (`Requirement.family`): in a run the first of them records the
    history on a target, and the others use it. If the first is checked again, it records another history.

    :param scripts: returns the strategy for a target; it may depend on the settings of the target.
    :param divisor: the number of scripts of a sequential requirement is divided by it; at least one is generated.
    """

    name: str
    scripts: Scripts
    divisor: int = SCRIPTS_DIVISOR
    _ran: dict[tuple[Path, str], RecordedScripts] = field(default_factory=dict, repr=False)
    """Recorded histories, by the directory of a target's histories in the run and the target's name."""

    def generated_max(self, context: CheckContext) -> int:
        """Return the maximum number of scripts to generate for a check."""
        return max(1, context.scripts_max // self.divisor)

    def generated(self, context: CheckContext, target: Target) -> list[Trial]:
        """Return the scripts that a check runs on a target."""
        scripts_max = self.generated_max(context)
        return scripts_of(self.scripts(target), seed_value=context.seed, scripts_max=scripts_max)

    def history(self, context: CheckContext, target: Target) -> RecordedScripts:
        """Return the history of this family in a run; record it if there is none. Raises `ScriptNotRunError`."""
        run_dir = context.history_dirs[target.name]
        key = (run_dir.parent, target.name)
        ran = self._ran.get(key)
        if ran is None or ran.requirement_id == context.requirement_id:
            ran = self._ran[key] = RecordedScripts(run_dir, context.requirement_id, self._run(context, target, run_dir))
        return ran

    def _run(self, context: CheckContext, target: Target, run_dir: Path) -> Mapping[str, Trial]:
        scripts = self.generated(context, target)
        topics: dict[str, Trial] = {}
        with HistoryRun(target, run_dir, context.seed) as run:
            for done, script in enumerate(scripts, start=1):
                topics[run.run(script)] = script
                context.script_ran(target.name, done, len(scripts))
        return topics


def concurrent_check(family: Family, history_checks: HistoryChecks = lambda _: ()) -> Check:
    """Return the check of a requirement: the checkers and the requirement's history checks judge a family's history."""

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
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def find(self) -> Finding:
        try:
            ran = self.family.history(self.context, self.target)
        except ScriptNotRunError as error:
            return Finding(Verdict.UNKNOWN, str(error))
        result = judge_history(ran.run_dir, self.history_checks)
        if result.verdict is not Verdict.VIOLATION:
            return Finding(result.verdict, result.reason, scripts=len(ran.scripts), judgement=result.judgement)
        named = [script for topic, script in ran.scripts.items() if topic in result.topics]
        return self._explain(result, named or list(ran.scripts.values()), len(ran.scripts))

    def _explain(self, result: HistoryVerdict, suspects: Sequence[Trial], scripts_run: int) -> Finding:
        deadline = time.monotonic() + self.context.shrink_seconds
        culprit = next((script for script in suspects if self._violates_again(script, deadline)), None)
        shown = suspects[0]
        if culprit is not None:
            shown = self._smallest(culprit, deadline)
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
            flaky=culprit is None,
            judgement=result.judgement,
        )

    def _smallest(self, culprit: Trial, deadline: float) -> Trial:
        """Return the smallest violating script found in time. Scripts generated before the culprit do not run again."""
        scripts = self.family.generated(self.context, self.target)
        return smallest(
            self.family.scripts(self.target),
            seed_value=self.context.seed,
            scripts_max=self.family.generated_max(self.context),
            first=culprit,
            passed=tuple(takewhile(lambda script: script != culprit, scripts)),
            violates=self._violates,
            time_is_up=lambda: time.monotonic() >= deadline,
        )

    def _violates_again(self, script: Trial, deadline: float) -> bool:
        for attempt in range(RERUNS_MAX):
            if attempt and time.monotonic() >= deadline:
                return False
            if self._violates(script):
                return True
        return False

    def _violates(self, script: Trial) -> bool:
        """Run a script alone, in a separate directory; return whether its history has a violation."""
        run_dir = self.context.history_dirs[self.target.name] / "again" / str(next(self._numbers))
        try:
            with HistoryRun(self.target, run_dir, self.context.seed) as run:
                run.run(script)
        except ScriptNotRunError:
            return False
        return judge_history(run_dir, self.history_checks).verdict is Verdict.VIOLATION
