"""One row of a table of concurrent requirements."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.concurrent.check import Examinations, Family, Scripts, concurrent_check
from conformance.concurrent.examinations import Examination
from conformance.requirements.requirement import Level, Requirement, Source
from fixtures.targets.target import Capability, Target


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised, where that is written, which scripts show it, and what to examine besides the anomalies."""

    id: str
    text: str
    sources: tuple[Source, ...]
    scripts: Scripts | Family
    """A family where other requirements are judged by the same history."""
    examinations: Examinations = lambda _: ()
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
            check=concurrent_check(family, self.examinations),
            needs=self.needs | {Capability.TOPIC_ADMIN},
            nodes_min=self.nodes_min,
            family=family.name,
        )


def always(*examinations: Examination) -> Examinations:
    """The same examinations for every target."""

    def of(_: Target) -> Sequence[Examination]:
        return examinations

    return of
