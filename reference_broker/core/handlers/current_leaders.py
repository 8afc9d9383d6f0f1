"""Where a client is sent that asked the wrong broker, in the same answer (KIP-951)."""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.replication.partition import NO_EPOCH, NO_LEADER
from reference_broker.core.request import Request


class CurrentLeaders:
    """The leaders that one response names, and at its end their addresses on the listener that the client came by."""

    def __init__(self, broker: Broker, request: Request) -> None:
        self._broker = broker
        self._request = request
        self._named: set[int] = set()

    def of(self, topic: str, index: int) -> Any:
        """Leader and epoch of a partition, as the replica here knows them, else as the metadata says."""
        partition = self._broker.replicas.get(topic, index) or self._broker.image.partition(topic, index)
        leader = NO_LEADER if partition is None else partition.leader
        self._named.add(leader)
        return self._request.replies.LeaderIdAndEpoch(
            leader_id=leader, leader_epoch=NO_EPOCH if partition is None else partition.leader_epoch
        )

    def endpoints(self) -> tuple[Any, ...]:
        """The addresses of those that were named and are alive."""
        new, listener = self._request.replies, self._request.connection.listener
        live = (self._broker.image.brokers.get(node_id) for node_id in sorted(self._named))
        return tuple(
            new.NodeEndpoint(node_id=node.broker_id, host=end.host, port=end.port, rack=node.rack)
            for node in live
            if node is not None and not node.fenced
            for end in node.end_points
            if end.name == listener
        )
