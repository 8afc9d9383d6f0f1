"""The cluster as a client of one listener may see it: brokers by their addresses there, and the state of partitions.

A broker is listed while it is not fenced and has that listener. A leader may be fenced: the record that elects another
one is on its way. Source: Kafka's `KRaftMetadataCache`.
"""

from dataclasses import dataclass

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.metadata_records import NO_LEADER, PartitionRecord, RegisterBrokerRecord


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker, at the address for the client's listener."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition; `leader` is -1 where there is none, or none that the client can reach.

    :param leader_registered: its leader, reachable or not, is a registered broker.
    :param offline: replicas on brokers that are fenced, gone, or without the listener.
    """

    record: PartitionRecord
    leader: int
    leader_registered: bool
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What a listener's clients see."""

    image: MetadataImage
    listener: str

    def brokers(self, *, with_fenced: bool = False) -> list[BrokerView]:
        """Every broker that has the listener, by id."""
        found = (self._seen(broker) for _, broker in sorted(self.image.brokers.items()))
        return [broker for broker in found if broker is not None and (with_fenced or not broker.fenced)]

    def controller(self, own_id: int) -> int:
        """Who takes requests for the controller: any broker that is listed, best the one that is asked (KIP-590)."""
        ids = [broker.node_id for broker in self.brokers()]
        return own_id if own_id in ids else next(iter(ids), -1)

    def partition(self, record: PartitionRecord) -> PartitionView:
        """One partition."""
        leader = self.image.brokers.get(record.leader)
        reachable = leader is not None and self._seen(leader) is not None
        return PartitionView(
            record=record,
            leader=record.leader if reachable else NO_LEADER,
            leader_registered=leader is not None,
            offline=tuple(replica for replica in record.replicas if not self.is_alive(replica)),
        )

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is listed."""
        broker = self.image.brokers.get(node_id)
        return broker is not None and not broker.fenced and self._seen(broker) is not None

    def _seen(self, broker: RegisterBrokerRecord) -> BrokerView | None:
        for endpoint in broker.end_points:
            if endpoint.name == self.listener:
                return BrokerView(broker.broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
        return None
