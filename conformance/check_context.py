"""The input of a requirement's check, and its result.

A check is a function of a `CheckContext`. It generates scripts with Hypothesis from its seed, runs each on all
targets, and returns one `Finding` per target. It closes its connections to the targets before it returns.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.liveness import responds
from fixtures.targets.target import Target
from linearizability.finding import Finding


@dataclass(frozen=True, slots=True)
class BasicFailure:
    """The way in which every plain request of one kind fails on a target (`conformance.sequential.basics`)."""

    target: str
    request: str
    field: str
    actual: str
    """Name of the error; empty if there was no response."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """Input of one requirement's check: targets, seed, limits and callbacks."""

    requirement_id: str
    targets: Sequence[Target]
    """Targets to which the requirement applies, already started."""
    seed: int
    """Seed of this requirement, derived from the run's seed and the requirement's family or id."""
    scripts_max: int
    """Maximum number of scripts (the profile's). A check of slow scripts divides it."""
    shrink_seconds: float
    """Maximum time for shrinking on one target."""
    history_dirs: Mapping[str, Path]
    """Run directory of this requirement's history on each target, by target name."""
    script_ran: Callable[[str, int, int], None]
    """Function that reports progress: target name, scripts done, scripts planned."""
    revive: Callable[[Target], bool] = responds
    """Function that starts a target again if it does not respond, and returns whether it responds."""
    basic_failures: MutableMapping[BasicFailure, str] = field(default_factory=dict)
    """For each failure of a plain request, the requirement of this run that reported it."""


Check = Callable[[CheckContext], Mapping[str, Finding]]
"""Function that checks a requirement, and returns the findings by target name."""
