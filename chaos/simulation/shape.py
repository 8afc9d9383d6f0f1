"""What a drawn script is about, before its clients and faults are drawn: nodes and topics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes 1 to `nodes`; `roles` as of `Cluster`; topics by name with their number of partitions."""

    nodes: int = 3
    roles: tuple[tuple[int, str], ...] = ()
    topics: tuple[tuple[str, int], ...] = (("a", 1),)
    replication_factor: int = 3

    @property
    def brokers(self) -> tuple[int, ...]:
        """Those that have replicas."""
        roles = dict(self.roles)
        return tuple(node for node in range(1, self.nodes + 1) if "broker" in roles.get(node, "broker"))

    @property
    def partitions(self) -> tuple[tuple[str, int], ...]:
        """Every topic with every number of a partition."""
        return tuple((name, partition) for name, count in self.topics for partition in range(count))
