"""Selection of requirements by id or area on the command line; an unknown name is reported with a similar one."""

import difflib
from collections.abc import Collection, Sequence

from conformance.registry import REQUIREMENTS, select
from conformance.requirements.requirement import Level, Requirement
from kafkatrial.errors import UsageError


def ids() -> frozenset[str]:
    """Return all ids of the registry."""
    return frozenset(requirement.id for requirement in REQUIREMENTS)


def select_requirements(wanted: Sequence[str], level: str) -> tuple[Requirement, ...]:
    """Return the wanted requirements. A name is an id, or an area, which selects its requirements of at least `level`.

    Without names, all requirements of at least that level are selected.

    Raises:
        UsageError: a name is neither an id nor an area.
    """
    known = ids() | {requirement.area for requirement in REQUIREMENTS}
    for name in wanted:
        if name not in known:
            raise UsageError(did_you_mean(name, known))
    return select(wanted, Level(level.upper()))


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return why a name is invalid, with a similar valid one."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else "kafkatrial requirements lists them"
    return f"{name}: no requirement and no area of that name; {hint}"
