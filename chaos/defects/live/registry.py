"""Registry of the defects that need a real process or a real disk."""

from collections.abc import Mapping
from types import MappingProxyType

from chaos.defects.defect import Defect
from chaos.defects.live import files, process
from chaos.defects.registry import defect

LIVE_DEFECTS: Mapping[str, Defect] = MappingProxyType(
    {value.name: value for area in (files, process) for value in vars(area).values() if isinstance(value, Defect)}
)
"""Defects of the server around the core, which the simulation does not run and cannot detect."""


def live_defect(name: str) -> Defect:
    """Return any defect by name, also one of the core. Raises `UnknownDefectError`."""
    return LIVE_DEFECTS[name] if name in LIVE_DEFECTS else defect(name)
