"""The cluster as clients of one listener see it: broker endpoints and partition states.

Follows: org.apache.kafka.metadata.KRaftMetadataCache (KIP-430, KIP-590).

A broker is alive for these clients if it is not fenced and has their listener. As in Kafka, a partition's leader is
returned even if its broker is fenced.
"""

from dataclasses import dataclass

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.metadata_records import NO_LEADER, PartitionRecord, RegisterBrokerRecord

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = range(3, 10)
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 10, 11, 12
"""Codes of `AclOperation`."""


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
"""All operations on a topic, as a bit set for responses (KIP-430)."""

CLUSTER_OPERATIONS = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE
)
"""All operations on the cluster, as a bit set for responses (KIP-430)."""


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker with its endpoint on the client's listener."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition; `leader` is -1 if there is no leader, or if the leader lacks the client's listener.

    :param leader_registered: whether the leader is a registered broker, with or without the listener.
    :param offline: replicas on brokers that are fenced, unregistered, or without the listener.
    """

    record: PartitionRecord
    leader: int
    leader_registered: bool
    offline: tuple[int, ...]


class ClusterView:
    """The cluster as seen by clients of a listener.

    :param listener: name of the listener.
    """

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self.image = image
        views = (_view(broker, listener) for _, broker in sorted(image.brokers.items()))
        self._brokers = {view.node_id: view for view in views if view is not None}
        self._alive = frozenset(view.node_id for view in self._brokers.values() if not view.fenced)

    def brokers(self, *, with_fenced: bool = False) -> list[BrokerView]:
        """Return the brokers that have the listener, in order of ids.

        :param with_fenced: whether fenced brokers are included.
        """
        return [view for view in self._brokers.values() if with_fenced or not view.fenced]

    def controller(self, own_id: int) -> int:
        """Return the id of a broker that forwards to the controller (KIP-590); -1 if no broker is alive.

        The result is `own_id` if this broker is alive, otherwise the lowest id of a broker that is alive.
        """
        return own_id if own_id in self._alive else min(self._alive, default=-1)

    def partition(self, record: PartitionRecord) -> PartitionView:
        """Return the client's view of a partition."""
        return PartitionView(
            record=record,
            leader=record.leader if record.leader in self._brokers else NO_LEADER,
            leader_registered=record.leader in self.image.brokers,
            offline=tuple(replica for replica in record.replicas if replica not in self._alive),
        )

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is not fenced and has the listener."""
        return node_id in self._alive


def _view(broker: RegisterBrokerRecord, listener: str) -> BrokerView | None:
    for endpoint in broker.end_points:
        if endpoint.name == listener:
            return BrokerView(broker.broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
    return None
