"""Profiles: the number of scripts per requirement, and the maximum time for shrinking."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Profile:
    """Size of a run."""

    name: str
    scripts_max: int
    """Maximum number of scripts per requirement."""
    shrink_seconds: float
    """Maximum time for shrinking, per requirement and target."""


PROFILES: Final[Mapping[str, Profile]] = {
    "ci": Profile("ci", scripts_max=15, shrink_seconds=10.0),
    "nightly": Profile("nightly", scripts_max=300, shrink_seconds=120.0),
}
"""Profiles by name. On three nodes a run takes about four minutes per target with `ci`, and an hour with `nightly`. On
one node it takes a fifth of that."""
