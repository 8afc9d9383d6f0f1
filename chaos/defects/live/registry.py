"""Registry of the defects that need a real process or a real disk."""

from collections.abc import Mapping
from types import MappingProxyType

from chaos.defects.defect import Defect
from chaos.defects.live import files, process
from chaos.defects.registry import defect

LIVE_DEFECTS: Mapping[str, Defect] = MappingProxyType(
    {value.name: value for module in (files, process) for value in vars(module).values() if isinstance(value, Defect)}
)
"""Defects of the server around the core, by name. The simulation does not run this code, so it cannot detect them."""


def live_defect(name: str) -> Defect:
    """Return a defect of the server or of the core by name. Raises `UnknownDefectError`."""
    return LIVE_DEFECTS[name] if name in LIVE_DEFECTS else defect(name)
