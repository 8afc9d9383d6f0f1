"""Row of a table of concurrent requirements."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.concurrent.check import Family, HistoryChecks, Scripts, concurrent_check
from conformance.concurrent.history_checks import HistoryCheck
from conformance.requirements.requirement import Level, Requirement, Source
from fixtures.targets.target import Capability, Target


@dataclass(frozen=True, slots=True)
class RequirementRow:
    """One requirement: text, sources, scripts, and history checks in addition to the check for anomalies."""

    id: str
    text: str
    sources: tuple[Source, ...]
    scripts: Scripts | Family
    """A `Family` if other requirements share these scripts and are judged by the same history."""
    history_checks: HistoryChecks = lambda _: ()
    needs: frozenset[Capability] = field(default=frozenset())
    nodes_min: int = 1
    since: str | None = None
    """First Apache Kafka version for which the requirement holds."""

    @property
    def family(self) -> Family:
        """The family of the scripts; a requirement with its own scripts is a family of one."""
        return self.scripts if isinstance(self.scripts, Family) else Family(self.id, self.scripts)

    def requirement(self) -> Requirement:
        """Return the row as an entry of the registry."""
        family = self.family
        return Requirement(
            id=self.id,
            level=Level.MUST,
            text=self.text,
            sources=self.sources,
            check=concurrent_check(family, self.history_checks),
            needs=self.needs | {Capability.TOPIC_ADMIN},
            nodes_min=self.nodes_min,
            since=self.since,
            family=family.name,
        )


def always(*history_checks: HistoryCheck) -> HistoryChecks:
    """Return a function that returns these history checks for every target."""

    def checks(_: Target) -> Sequence[HistoryCheck]:
        return history_checks

    return checks
