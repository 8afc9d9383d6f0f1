"""From scripts to a finding: run them on a target, judge the one history, and shrink what violates.

All drawn scripts go into the history of the requirement's run directory, which is judged once. After a violation each
script that it points to runs again by itself, in a directory of its own; one that violates again is shrunk by
Hypothesis for as long as the profile allows, and only verdicts that were really seen count. A violation that no single
script shows again is *flaky*: it stays a violation, because it was in the history.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from hypothesis import Phase, given
from hypothesis import seed as with_seed
from hypothesis.strategies import SearchStrategy

from conformance.concurrent.examinations import Examination, Shortcoming
from conformance.concurrent.program import program_of
from conformance.concurrent.run import HistoryRun, ScriptNotRunError
from conformance.concurrent.script import Script
from conformance.reproducible import search_settings
from conformance.trial import Check, Finding, Trial
from fixtures.targets.target import Target
from linearizability.check import judge
from linearizability.history.reader import open_history
from linearizability.judgement import Judgement, Verdict

SCRIPTS_DIVISOR = 5
"""A concurrent script costs seconds where a sequential one costs a tenth: so many times fewer are run."""
RERUNS_MAX = 3
"""How often a script must fail to violate again before it is flaky."""


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    """What checkers and examinations say of one history."""

    judgement: Judgement
    shortcomings: tuple[Shortcoming, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        verdicts = {self.judgement.verdict, *(each.verdict for each in self.shortcomings)}
        return next((each for each in (Verdict.VIOLATION, Verdict.UNKNOWN) if each in verdicts), Verdict.OK)

    @property
    def reason(self) -> str:
        """One line: the first thing found that is as bad as the verdict."""
        return next(iter(self._reasons()), "")

    def _reasons(self) -> Iterator[str]:
        for shortcoming in self.shortcomings:
            if shortcoming.verdict is self.verdict:
                yield shortcoming.text
        for anomaly in self.judgement.anomalies:
            if anomaly.verdict is self.verdict and anomaly.count:
                yield f"{anomaly.name} ({anomaly.count}): {anomaly.evidence[0].text if anomaly.evidence else ''}"
        if self.verdict is Verdict.UNKNOWN:
            yield from self.judgement.reasons

    @property
    def topics(self) -> frozenset[str]:
        """The topics to which the violations point."""
        anomalies = [anomaly for anomaly in self.judgement.anomalies if anomaly.verdict is Verdict.VIOLATION]
        named = {evidence.topic for anomaly in anomalies for evidence in anomaly.evidence}
        named |= {each.topic for each in self.shortcomings if each.verdict is Verdict.VIOLATION}
        return frozenset(topic for topic in named if topic is not None)


def judge_history(run_dir: Path, examinations: Sequence[Examination] = ()) -> HistoryVerdict:
    """Judge a run directory by the checkers and by a requirement's own examinations."""
    history = open_history(run_dir)
    shortcomings = tuple(found for examine in examinations for found in examine(history))
    return HistoryVerdict(judge(run_dir), shortcomings)


Examinations = Callable[[Target], Sequence[Examination]]
Scripts = Callable[[Target], SearchStrategy[Script]]


def concurrent_check(scripts: Scripts, examinations: Examinations = lambda _: (), *, scripts_max: int = 1000) -> Check:
    """The check of a requirement that is judged by histories.

    :param scripts: what to draw for a target, by its settings.
    :param examinations: on top of the checkers.
    :param scripts_max: for scripts that take long.
    """

    def check(trial: Trial) -> Mapping[str, Finding]:
        found = {}
        for target in trial.targets:
            drawn_max = min(scripts_max, max(1, trial.scripts_max // SCRIPTS_DIVISOR))
            case = _Case(trial, target, scripts(target), tuple(examinations(target)), drawn_max)
            found[target.name] = case.find()
        return found

    return check


@dataclass(slots=True)
class _Case:
    """One requirement on one target."""

    trial: Trial
    target: Target
    scripts: SearchStrategy[Script]
    examinations: tuple[Examination, ...]
    scripts_max: int
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def find(self) -> Finding:
        drawn = draw_scripts(self.scripts, self.trial.seed, self.scripts_max)
        topics: dict[str, Script] = {}
        try:
            with HistoryRun(self.target, self._run_dir, self.trial.seed) as run:
                for done, script in enumerate(drawn, start=1):
                    topics[run.run(script)] = script
                    self.trial.script_ran(self.target.name, done, len(drawn))
        except ScriptNotRunError as error:
            return Finding(Verdict.UNKNOWN, str(error), scripts=len(topics))
        result = judge_history(self._run_dir, self.examinations)
        if result.verdict is not Verdict.VIOLATION:
            return Finding(result.verdict, result.reason, scripts=len(drawn), judgement=result.judgement)
        suspects = [script for topic, script in topics.items() if topic in result.topics] or list(topics.values())
        return self._explain(result, suspects, len(drawn))

    @property
    def _run_dir(self) -> Path:
        return self.trial.history_dirs[self.target.name]

    def _explain(self, result: HistoryVerdict, suspects: Sequence[Script], scripts_run: int) -> Finding:
        deadline = time.monotonic() + self.trial.shrink_seconds
        culprit = next((script for script in suspects if self._violates_again(script, deadline)), None)
        shown = suspects[0]
        if culprit is not None:
            shown = shrink(
                culprit,
                self.scripts,
                self._violates,
                seed=self.trial.seed,
                scripts_max=self.scripts_max,
                deadline=deadline,
            )
        return Finding(
            Verdict.VIOLATION,
            result.reason,
            scripts=scripts_run,
            expected="a history without this violation",
            actual=result.reason,
            program=program_of(shown, self.trial.requirement_id, self.target.name, len(self.target.nodes)),
            flaky=culprit is None,
            judgement=result.judgement,
        )

    def _violates_again(self, script: Script, deadline: float) -> bool:
        for attempt in range(RERUNS_MAX):
            if attempt and time.monotonic() >= deadline:
                return False
            if self._violates(script):
                return True
        return False

    def _violates(self, script: Script) -> bool:
        """Run one script in a run directory of its own, below the requirement's."""
        run_dir = self._run_dir / "again" / str(next(self._numbers))
        try:
            with HistoryRun(self.target, run_dir, self.trial.seed) as run:
                run.run(script)
        except ScriptNotRunError:
            return False
        return judge_history(run_dir, self.examinations).verdict is Verdict.VIOLATION


def draw_scripts(scripts: SearchStrategy[Script], seed: int, scripts_max: int) -> list[Script]:
    """So many different scripts (fewer where there are no more), the same for the same seed."""
    drawn: dict[Script, None] = {}

    @search_settings(scripts_max, Phase.generate)
    @given(scripts)
    def collect(script: Script) -> None:
        drawn.setdefault(script)

    with_seed(seed)(collect)()
    return list(drawn)


class _ViolationError(Exception):
    """Tells Hypothesis that a script violates."""


def shrink(
    culprit: Script,
    scripts: SearchStrategy[Script],
    violates: Callable[[Script], bool],
    *,
    seed: int,
    scripts_max: int,
    deadline: float,
) -> Script:
    """The smallest script found that was seen to violate, within the time there is.

    Hypothesis draws the scripts of `draw_scripts` again, meets the culprit and shrinks from there; what it draws before
    is not run. Each script runs once: its verdict is kept, since a real cluster may behave otherwise the next time.
    """
    seen = {culprit: True}
    smallest = culprit
    met = False

    @search_settings(scripts_max, Phase.generate, Phase.shrink)
    @given(scripts)
    def meet(script: Script) -> None:
        nonlocal smallest, met
        met = met or script == culprit
        if met and script not in seen and time.monotonic() < deadline:
            seen[script] = violates(script)
        if met and seen.get(script, False):
            smallest = script  # the last one to get here is the smallest: Hypothesis ends with it
            raise _ViolationError

    with suppress(_ViolationError):
        with_seed(seed)(meet)()
    return smallest
