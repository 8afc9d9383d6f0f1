"""Findings and violations of a round by name, and its summary as text."""

from chaos.live.findings import FINDINGS
from chaos.live.report import Report
from linearizability.printable import counted


def shows(report: Report, name: str) -> bool:
    """Whether a round has shown a finding or a violation of that name."""
    if name in FINDINGS:
        return FINDINGS[name].shows(report)
    return any(name == violation.name for violation in report.violations)


def text_of(report: Report, name: str) -> str:
    """Return the text of a finding, or of the round's violation of that name."""
    if name in FINDINGS:
        return FINDINGS[name].text
    return next((violation.text for violation in report.violations if violation.name == name), name)


def describe(report: Report) -> str:
    """Return the verdict and the summary, in lines."""
    found = [f"violation {violation.name}: {violation.text}" for violation in report.violations] or ["no violation"]
    found += [f"unknown: {reason}" for reason in report.unknown]
    return "\n".join((*found, *summary_of(report)))


def summary_of(report: Report) -> list[str]:
    """Return the lines of the summary, without the verdict."""
    found = [f"permitted: {name} ({count})" for name, count in report.permitted.items()]
    found += [f"records of acks={'all' if acks < 0 else acks} lost: {lost:,}" for acks, lost in report.lost.items()]
    recovery_s = report.facts.recovery_s
    recovered = "not recovered" if recovery_s is None else f"recovered {recovery_s:.1f} s after the heal"
    acknowledged = counted(report.acknowledged, "record")
    found.append(f"{acknowledged} acknowledged, at most {report.silence_max_s:.1f} s without one, {recovered}")
    return found
