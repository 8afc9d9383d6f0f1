"""Requirements: one `Requirement` per promise of a broker, with its source.

Ids are `area/name-of-the-promise` and are never reused. Levels are RFC 2119's. A requirement names the capabilities
that it needs of a target; without them it is *not applicable*, never passed.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from conformance.check_context import Check
from fixtures.clients.messages import ApiKey
from fixtures.targets.target import Capability

KRAFT: Final = "3.3.0"
"""First Kafka version whose KRaft mode is ready for production. In earlier versions, every change that the controller
makes to a partition, such as a new assignment, increases the leader epoch; only the controller serves requests for the
controller; and some errors differ."""


class Level(StrEnum):
    """Strength of a promise."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


def requirement_of(area: str, api: ApiKey) -> str:
    """Return the id of the requirement of an area that has one for each API, such as `versions/list-offsets`."""
    return f"{area}/{api.name.lower().replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a promise: a KIP, the protocol guide, a configuration reference."""

    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One promise, and its check."""

    id: str
    level: Level
    text: str
    """The promise, in a sentence that the author of a broker can act on."""
    sources: tuple[Source, ...]
    check: Check
    needs: frozenset[Capability] = field(default=frozenset())
    since: str | None = None
    """First Apache Kafka version for which the requirement holds."""
    until: str | None = None
    """Last Apache Kafka version for which the requirement holds."""
    nodes_min: int = 1
    family: str = ""
    """Name of the family, or empty. The requirements of a family share a seed and one recorded run of their scripts."""

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]
