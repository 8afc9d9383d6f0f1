"""Registry of the defects of the core, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from chaos.defects import (
    controller,
    durability,
    election,
    groups,
    idempotence,
    isr,
    log,
    metadata,
    protocol,
    quorum,
    recovery,
    replication,
)
from chaos.defects.defect import Defect

_AREAS = (
    protocol,
    log,
    recovery,
    durability,
    replication,
    isr,
    election,
    controller,
    quorum,
    metadata,
    idempotence,
    groups,
)

DEFECTS: Mapping[str, Defect] = MappingProxyType(
    {value.name: value for area in _AREAS for value in vars(area).values() if isinstance(value, Defect)}
)
"""Defects by name, in the order of their areas."""


class UnknownDefectError(KeyError):
    """Name that no defect has."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"there is no defect {self.name!r}; `kafkatrial sensitivity --list` has their names"


def defect(name: str) -> Defect:
    """Return a defect by name. Raises `UnknownDefectError`."""
    try:
        return DEFECTS[name]
    except KeyError:
        raise UnknownDefectError(name) from None
