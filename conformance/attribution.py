"""Attribution of findings: failures of links, and violations that are expected.

The suite's own links between clients and brokers may fail. A violation that they may explain is *unknown*.
"""

from conformance.expectations import ExpectedViolation
from fixtures.targets.target import Interfering, Target
from linearizability.finding import Finding
from linearizability.judgement import Verdict


def interference_with(target: Target) -> str:
    """Return the failures on a target's links since the last call, except those that its brokers caused."""
    return target.interference if isinstance(target, Interfering) else ""


def is_ok(finding: Finding | None) -> bool:
    """Whether there is a finding, and it is ok."""
    return finding is not None and finding.verdict is Verdict.OK


def attributed(finding: Finding, interference: str) -> Finding:
    """Return the finding, unless failures of links may explain it.

    If links have failed, a violation or an unknown finding is replaced by an unknown one that names the failures.
    """
    if finding.verdict not in {Verdict.VIOLATION, Verdict.UNKNOWN} or not interference:
        return finding
    return Finding(Verdict.UNKNOWN, f"{interference}; meanwhile: {finding.reason}", scripts=finding.scripts)


def reason_of(finding: Finding, known: ExpectedViolation | None) -> str:
    """Return the finding's reason; for an expected violation also the known reason, or that the requirement holds."""
    if known is None:
        return finding.reason
    if finding.verdict is Verdict.OK:
        return f"expected to be violated ({known.reason}), but it holds: remove it from the expectations"
    return f"{finding.reason} (expected: {', '.join(filter(None, (known.reason, known.link)))})"
