"""Nodes and topics of a generated trial, which its clients and faults depend on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes and topics of one trial.

    :ivar nodes: number of nodes; their ids are 1 to this number.
    :ivar roles: `process.roles` by node id, of the nodes that are not both broker and controller.
    :ivar topics: name and number of partitions of each topic.
    :ivar replication_factor: replication factor of all topics.
    """

    nodes: int = 3
    roles: tuple[tuple[int, str], ...] = ()
    topics: tuple[tuple[str, int], ...] = (("a", 1),)
    replication_factor: int = 3

    @property
    def all_roles(self) -> dict[int, str]:
        """The `process.roles` of each node, by its id."""
        return {node: dict(self.roles).get(node, "broker,controller") for node in range(1, self.nodes + 1)}

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the nodes that are brokers."""
        return tuple(node for node, role in self.all_roles.items() if "broker" in role)

    @property
    def partitions(self) -> tuple[tuple[str, int], ...]:
        """Topic name and index of all partitions."""
        return tuple((name, partition) for name, count in self.topics for partition in range(count))
