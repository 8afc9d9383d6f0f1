"""What the suite holds a broker to: one `Requirement` per promise, with its source.

Ids are `area/words-of-the-promise` and are never reused. Levels are RFC 2119's. A requirement says what it needs of a
target; where that is missing it is *not applicable*, never passed.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from conformance.check_context import Check
from fixtures.targets.target import Capability


class Level(StrEnum):
    """How strong the promise is."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the promise is written down: a KIP, the protocol guide, a configuration reference."""

    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One promise, and the check that a broker keeps it."""

    id: str
    level: Level
    text: str
    """The promise, in a sentence that a broker's author can act upon."""
    sources: tuple[Source, ...]
    check: Check
    needs: frozenset[Capability] = field(default=frozenset())
    since: str | None = None
    """First Apache Kafka version it holds for."""
    until: str | None = None
    """Last Apache Kafka version it holds for."""
    nodes_min: int = 1
    family: str = ""
    """Requirements of one family draw from one seed, so that they can be judged by one history; empty: by itself."""

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]
