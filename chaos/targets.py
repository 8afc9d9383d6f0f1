"""Importing this registers the targets that only this layer knows how to make: `simulation` and `defective`."""

from fixtures.targets.catalogue import TargetKind, Wanted, register_target_kind
from fixtures.targets.target import Target, UnknownTargetError

_NODE_COUNTS = (3, 1, 5)
"""How many nodes may be asked for, the default first."""


def _simulation(wanted: Wanted) -> Target:
    from chaos.simulation.target import Simulation  # with the whole broker, which most commands do without

    if wanted.argument:
        raise UnknownTargetError(f"{wanted.name}: the simulation has no versions; say simulation")
    nodes = _NODE_COUNTS[0] if wanted.nodes is None else wanted.nodes
    if nodes not in _NODE_COUNTS:
        raise UnknownTargetError(f"simulation: {nodes} nodes are not offered; there are 1, 3 and 5")
    return Simulation(nodes, properties=wanted.properties)


def _defective(wanted: Wanted) -> Target:
    from chaos.defects.live.target import DefectiveReference  # with the whole broker, too

    return DefectiveReference.wanted(wanted)


register_target_kind(
    TargetKind(
        kind="simulation",
        starts="the reference broker in virtual time, in this process",
        versions=(),
        nodes=_NODE_COUNTS,
        install=None,
        is_installed=lambda _: True,
        make=_simulation,
    )
)
register_target_kind(
    TargetKind(
        kind="defective",
        starts="the reference broker with a bug that is named: defective:NAME",
        versions=(),
        nodes=_NODE_COUNTS,
        install=None,
        is_installed=lambda _: True,
        make=_defective,
    )
)
