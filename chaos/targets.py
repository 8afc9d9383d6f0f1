"""Registration of the targets `simulation` and `defective`. Importing this module registers them."""

from fixtures.targets.catalogue import TargetKind, Wanted, register_target_kind
from fixtures.targets.node_counts import NODE_COUNTS
from fixtures.targets.target import Target, UnknownTargetError


def _simulation(wanted: Wanted) -> Target:
    from chaos.simulation.target import Simulation  # imports the whole broker, which most commands do not need

    if wanted.argument:
        raise UnknownTargetError(f"{wanted.name}: the simulation has no versions; use simulation")
    assert wanted.nodes is not None
    return Simulation(wanted.nodes, properties=wanted.properties)


def _defective(wanted: Wanted) -> Target:
    from chaos.defects.live.target import defective_reference  # imports the whole broker, too

    return defective_reference(wanted)


_KINDS = (
    ("simulation", "the reference broker in virtual time, in this process", _simulation),
    ("defective", "the reference broker with a seeded defect: defective:NAME", _defective),
)
for _kind, _starts, _make in _KINDS:
    register_target_kind(
        TargetKind(
            kind=_kind,
            starts=_starts,
            versions=(),
            nodes=NODE_COUNTS,
            install=None,
            is_installed=lambda _: True,
            make=_make,
        )
    )
