"""Nodes and topics of a generated trial, which its clients and faults depend on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes 1 to `nodes`; `roles` as in `ClusterSettings`; topics by name with their number of partitions."""

    nodes: int = 3
    roles: tuple[tuple[int, str], ...] = ()
    topics: tuple[tuple[str, int], ...] = (("a", 1),)
    replication_factor: int = 3

    @property
    def all_roles(self) -> dict[int, str]:
        """The role of each node; the default is both roles."""
        return {node: dict(self.roles).get(node, "broker,controller") for node in range(1, self.nodes + 1)}

    @property
    def brokers(self) -> tuple[int, ...]:
        """The nodes with replicas."""
        return tuple(node for node, role in self.all_roles.items() if "broker" in role)

    @property
    def partitions(self) -> tuple[tuple[str, int], ...]:
        """All partitions of all topics."""
        return tuple((name, partition) for name, count in self.topics for partition in range(count))
