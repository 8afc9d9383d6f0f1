"""Finding: the verdict on one requirement for one target, with its cause, its shortest trial and its evidence.

A check creates it, the engine of a run completes it, and every report shows it: terminal, JUnit, HTML, results.json.
"""

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Final

from linearizability.judgement import Judgement, Verdict

_ONLY_IN_A_SAVED_FAILURE: Final = frozenset({"trial", "beside", "blocked_by", "steps"})


class Standing(StrEnum):
    """The standing of a finding in its run: its verdict, compared with the expectations file."""

    OK = "ok"
    VIOLATION = "violation"
    EXPECTED = "expected violation"
    """A violation that the expectations file names, or an unknown verdict because of such a violation elsewhere."""
    FIXED = "unexpectedly ok"
    """The verdict is ok, but the expectations file names a violation.

    It counts as a failure of the run, so that the stale expectation is removed.
    """
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Difference:
    """One script, two targets, and their different responses to one step."""

    other_target: str
    severity: str
    """wire-cosmetic, error-code or semantic."""
    step: int
    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The verdict and its reasons. An empty field is unknown or does not apply.

    A check sets the verdict and its reasons. The engine adds the requirement, its level, the target, the expectation,
    the duration, and how to reproduce the violation.
    """

    requirement: str = ""
    level: str = ""
    target: str = ""
    verdict: Verdict = field(kw_only=False)
    expected_violation: bool = False
    """Whether the expectations file names this violation, or the one that blocks the requirement."""
    reason: str = field(default="", kw_only=False)
    """One line: the cause of a violation, why the verdict is unknown, or what the target lacks."""
    scripts: int = 0
    seconds: float = 0.0
    expected: str = ""
    actual: str = ""
    program: str = ""
    """The shrunk script as a runnable Python program."""
    flaky: bool = False
    """Whether the violation did not recur when the script ran again."""
    judgement: Judgement | None = None
    """The judgement of the history, for a requirement that is judged by one."""
    differences: tuple[Difference, ...] = ()
    reproduce: str = ""
    """The command line that shows the violation again."""
    failure_dir: str = ""
    trial: str = ""
    """The document of the script as a saved trial (`conformance.trial.document`), for a script that can be replayed."""
    steps: str = ""
    """Each request of the shortest script with its decoded response, for a script of single requests."""
    blocked_by: str = ""
    """The requirement that reported the same failure of a plain request, so that the verdict of this one is unknown."""
    beside: str = ""
    """The target whose different responses decided the verdict, if the rules of the requirement did not.

    The violation can then be reproduced only with both targets.
    """

    @property
    def standing(self) -> Standing:
        """The verdict, compared with the expectation."""
        if self.verdict is Verdict.VIOLATION:
            return Standing.EXPECTED if self.expected_violation else Standing.VIOLATION
        if self.verdict is Verdict.OK:
            return Standing.FIXED if self.expected_violation else Standing.OK
        if self.verdict is Verdict.UNKNOWN:
            return Standing.EXPECTED if self.expected_violation else Standing.UNKNOWN
        return Standing.NOT_APPLICABLE

    def as_json(self) -> dict[str, object]:
        """Return the JSON object of `finding.json` and of a run's events: all fields but `_ONLY_IN_A_SAVED_FAILURE`."""
        judgement = None if self.judgement is None else self.judgement.as_json()
        document = asdict(replace(self, judgement=None)) | {"judgement": judgement}
        return {name: value for name, value in document.items() if name not in _ONLY_IN_A_SAVED_FAILURE}
