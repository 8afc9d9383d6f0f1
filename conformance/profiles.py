"""Profiles: the number of scripts per requirement, and the maximum time for shrinking."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Profile:
    """Size of a run."""

    name: str
    scripts_max: int
    """Scripts per requirement."""
    shrink_seconds: float
    """Per requirement and target."""


PROFILES: Final[Mapping[str, Profile]] = {
    "ci": Profile("ci", scripts_max=15, shrink_seconds=10.0),
    "nightly": Profile("nightly", scripts_max=300, shrink_seconds=120.0),
}
"""By name. With three nodes `ci` takes some four minutes per target, `nightly` an hour; with one node a fifth."""
