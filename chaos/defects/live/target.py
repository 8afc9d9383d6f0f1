"""The target `defective:NAME`: the reference cluster with the same bug seeded into each node."""

from chaos.defects.live.registry import live_defect
from chaos.defects.registry import UnknownDefectError
from fixtures.targets.catalogue import Wanted, cluster_of
from fixtures.targets.reference import Reference
from fixtures.targets.target import Target, UnknownTargetError


def defective_reference(wanted: Wanted) -> Target:
    """Return a cluster of nodes that start through `chaos.defects.live.launch`. Raises `UnknownTargetError`."""
    return cluster_of(defective_recipe(wanted), wanted)


def defective_recipe(wanted: Wanted) -> Reference:
    """Return the recipe of the requested defect. Raises `UnknownTargetError`."""
    try:
        found = live_defect(wanted.argument)
    except UnknownDefectError:
        message = f"there is no defect {wanted.argument!r}; docs/defects.md lists them"
        raise UnknownTargetError(f"{wanted.name}: {message}") from None
    return Reference(wanted.name, ("chaos.defects.live.launch", found.name))
