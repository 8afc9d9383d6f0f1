"""The defects that take a real process or a real disk, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from chaos.defects.defect import Defect
from chaos.defects.live import files, process
from chaos.defects.registry import defect

LIVE_DEFECTS: Mapping[str, Defect] = MappingProxyType(
    {value.name: value for area in (files, process) for value in vars(area).values() if isinstance(value, Defect)}
)
"""Those of the server around the core, which the simulation does without and so cannot see."""


def live_defect(name: str) -> Defect:
    """Any defect by its name, the core's too: a process can have them all. Raises `UnknownDefectError`."""
    return LIVE_DEFECTS[name] if name in LIVE_DEFECTS else defect(name)
