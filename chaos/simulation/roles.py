"""Present nodes by role in a simulated cluster. They are read from the state of the simulation, without requests."""

from fixtures.faults import Node, Role
from fixtures.faults.places import InitialRoles
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.simulation.cluster import SimulatedCluster


class Roles:
    """Roles in one cluster. Leader and followers are those of partition 0 of `topic`."""

    def __init__(self, cluster: SimulatedCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._initial = InitialRoles()

    def note_initial(self) -> None:
        """Note the initial replicas and brokers, to which roles such as `FIRST_REPLICA` refer."""
        partition = self._partition(self._topic)
        self._initial = InitialRoles(() if partition is None else tuple(partition.replicas), self.brokers)

    def node(self, name: Node) -> int | None:
        """Return the id of the node that has this role now, or the given id; None if there is no such node."""
        match name:
            case int():
                return name if name in self._cluster.machines else None
            case Role.LEADER:
                return self._leader(self._topic)
            case Role.COORDINATOR:
                return self._leader(CONSUMER_OFFSETS_TOPIC)
            case Role.FOLLOWER:
                partition = self._partition(self._topic)
                followers = () if partition is None else partition.isr
                return next((node for node in sorted(followers) if node != self._leader(self._topic)), None)
            case Role.LAST_FOLLOWER:
                partition = self._partition(self._topic)
                followers = () if partition is None else partition.replicas
                return next((node for node in reversed(followers) if node != self._leader(self._topic)), None)
            case Role.CONTROLLER:
                return self._controller()
            case Role.STANDBY:
                voters = (node_id for node_id, role in self._cluster.roles.items() if "controller" in role)
                return next((node_id for node_id in voters if node_id != self._controller()), None)
            case Role.CLIENTS:
                return None
            case _:
                return self._initial.node(name, self._cluster.machines)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(node_id for node_id, role in self._cluster.roles.items() if "broker" in role)

    def image(self) -> MetadataImage | None:
        """Return the newest metadata of a running node."""
        newest = max(self._cluster.nodes.values(), key=lambda node: node.metadata.offset, default=None)
        return None if newest is None else newest.metadata.image

    def is_alone_in_sync(self, node_id: int) -> bool:
        """Whether there is a partition whose only in-sync replica is this node."""
        image = self.image()
        return image is not None and any(partition.isr == (node_id,) for partition in image.partitions())

    def _partition(self, topic: str) -> PartitionRecord | None:
        image = self.image()
        return None if image is None else image.partition(topic, 0)

    def _leader(self, topic: str) -> int | None:
        partition = self._partition(topic)
        return None if partition is None or partition.leader < 0 else partition.leader

    def _controller(self) -> int | None:
        """Return the active controller; if there are two, the one in the newer epoch."""
        active = [
            (node.quorum.state.epoch, node_id)
            for node_id, node in self._cluster.nodes.items()
            if node.controller is not None and node.controller.is_active
        ]
        return max(active)[1] if active else None
