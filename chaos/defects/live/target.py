"""The target `defective:NAME`: the reference cluster, each of whose nodes has one bug seeded into it."""

from collections.abc import Sequence

from chaos.defects.live.registry import live_defect
from chaos.defects.registry import UnknownDefectError
from fixtures.targets.catalogue import Wanted
from fixtures.targets.reference import Reference
from fixtures.targets.target import Target, UnknownTargetError


class DefectiveReference(Reference):
    """Nodes of the reference broker, started through `chaos.defects.live.launch`."""

    kind = "defective"
    _defect = ""

    @classmethod
    def wanted(cls, wanted: Wanted) -> Target:
        """Not started. Raises `UnknownTargetError`."""
        try:
            found = live_defect(wanted.argument)
        except UnknownDefectError:
            said = f"there is no defect {wanted.argument!r}; docs/defects.md lists them"
            raise UnknownTargetError(f"{wanted.name}: {said}") from None
        target = cls(
            wanted.nodes,
            properties=wanted.properties,
            work_dir=wanted.work_dir,
            mesh=wanted.mesh,
            port=wanted.port,
            prepare=wanted.prepare,
            disk=wanted.disk,
        )
        target.name, target._defect = wanted.name, found.name
        return target

    def _program(self) -> Sequence[str]:
        return ("chaos.defects.live.launch", self._defect)
