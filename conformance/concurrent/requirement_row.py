"""One row of a table of concurrent requirements."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.concurrent.check import Family, HistoryChecks, Scripts, concurrent_check
from conformance.concurrent.history_checks import HistoryCheck
from conformance.requirements.requirement import Level, Requirement, Source
from fixtures.targets.target import Capability, Target


@dataclass(frozen=True, slots=True)
class RequirementRow:
    """What is promised, where that is written, which scripts show it, and what to examine besides the anomalies."""

    id: str
    text: str
    sources: tuple[Source, ...]
    scripts: Scripts | Family
    """A family where other requirements are judged by the same history."""
    history_checks: HistoryChecks = lambda _: ()
    needs: frozenset[Capability] = field(default=frozenset())
    nodes_min: int = 1

    @property
    def family(self) -> Family:
        """Of its own, if it shares none."""
        return self.scripts if isinstance(self.scripts, Family) else Family(self.id, self.scripts)

    def requirement(self) -> Requirement:
        """The row as the registry wants it."""
        family = self.family
        return Requirement(
            id=self.id,
            level=Level.MUST,
            text=self.text,
            sources=self.sources,
            check=concurrent_check(family, self.history_checks),
            needs=self.needs | {Capability.TOPIC_ADMIN},
            nodes_min=self.nodes_min,
            family=family.name,
        )


def always(*history_checks: HistoryCheck) -> HistoryChecks:
    """The same history_checks for every target."""

    def of(_: Target) -> Sequence[HistoryCheck]:
        return history_checks

    return of
