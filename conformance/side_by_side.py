"""Checks of several requirements at a time, on one cluster.

A check shares the cluster if its scripts use their own topics, groups, producers and connections (`ScriptedCheck`)
and break nothing. Another check could still cause a deviation: if its script brings a broker down, all checks fail.
Therefore only *ok* and *not applicable* are final. After any other result, the engine checks the requirement again,
alone, with the same scripts. A violation in this second check is shrunk and attributed as usual.

- After a target has not responded, the remaining requirements are not checked here: they are checked alone, too.
- A violation, or the end of a broker, that is not reproduced alone is checked several times, unless one check takes
  too long. If none of these checks reproduces it, the verdict is *unknown*: either kafkatrial's scripts disturb each
  other, or the broker fails only under concurrent requests.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from conformance.check_context import CheckContext
from conformance.liveness import responds
from conformance.requirements.requirement import Requirement
from conformance.sequential.scripted_check import ScriptedCheck
from fixtures.targets.target import Capability, Target
from linearizability.finding import Finding
from linearizability.judgement import Verdict

_AT_A_TIME: Final = 4
"""Number of checks that run at the same time, each in its own thread."""
_HARMLESS: Final = frozenset({Capability.TOPIC_ADMIN, Capability.REPLICATION})
"""Capabilities with which a script breaks nothing."""
_FINAL: Final = frozenset({Verdict.OK, Verdict.NOT_APPLICABLE})


def shares_a_cluster(requirement: Requirement) -> bool:
    """Whether the scripts of a requirement neither break the cluster nor depend on what others do on it."""
    return isinstance(requirement.check, ScriptedCheck) and requirement.needs <= _HARMLESS


def doubted(alone: Finding, doubt: str) -> Finding:
    """Return the finding of a check alone; if it is ok, and there is a doubt, return it with the verdict unknown."""
    if not doubt or alone.verdict is not Verdict.OK:
        return alone
    reason = f"not reproduced alone; while other requirements were checked, {doubt}"
    return replace(alone, verdict=Verdict.UNKNOWN, reason=reason)


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a check beside others."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    """Findings by target; empty if the check did not run to its end."""
    seconds: float = 0.0
    doubts: Mapping[str, str] = field(default_factory=dict)
    """By target, the reason to doubt an *ok* of the later check alone: a violation, or a target that went down."""

    @property
    def is_final(self) -> bool:
        """Whether the requirement need not be checked again alone."""
        return bool(self.findings) and all(finding.verdict in _FINAL for finding in self.findings.values())


class SideBySide:
    """Checks of requirements by several threads, in the order of the requirements.

    :ivar results: by requirement id; complete once each thread has ended.
    :param on_done: called by a thread after each new result.
    :param interrupted: set when the run was interrupted; then no further check begins.
    """

    def __init__(
        self,
        checks: Sequence[tuple[Requirement, CheckContext]],
        on_done: Callable[[], None],
        interrupted: threading.Event,
    ) -> None:
        self._interrupted = interrupted
        self.results: dict[str, Result] = {}
        self._pending = iter(checks)
        self._lock = threading.Lock()
        self._target_is_down = threading.Event()
        self._on_done = on_done

    def start(self) -> Sequence[threading.Thread]:
        """Start the threads, and return them."""
        threads = [threading.Thread(target=self._work, name=f"checks {n}", daemon=True) for n in range(_AT_A_TIME)]
        for thread in threads:
            thread.start()
        return threads

    def _work(self) -> None:
        while not self._interrupted.is_set() and (check := self._next()) is not None:
            requirement, context = check
            self.results[requirement.id] = self._result(requirement, context)
            self._on_done()

    def _next(self) -> tuple[Requirement, CheckContext] | None:
        with self._lock:
            return next(self._pending, None)

    def _result(self, requirement: Requirement, context: CheckContext) -> Result:
        """Check a requirement without shrinking and without starting a target again: only a check alone does that."""
        if self._target_is_down.is_set():
            return Result()
        attempt = replace(context, shrink_seconds=0.0, revive=lambda _: False, basic_failures={})
        began = time.monotonic()
        try:
            findings = requirement.check(attempt)
        except BaseException:  # noqa: BLE001 - the check alone raises it again
            findings = {}
        result = Result(findings, time.monotonic() - began)
        return result if result.is_final else replace(result, doubts=self._doubts(findings, context.targets))

    def _doubts(self, findings: Mapping[str, Finding], targets: Sequence[Target]) -> Mapping[str, str]:
        down = {target.name: "it went down" for target in targets if not responds(target)}
        if down:
            self._target_is_down.set()
        violated = Verdict.VIOLATION
        return {name: each.reason for name, each in findings.items() if each.verdict is violated} | down
