"""Current leaders of partitions, in responses of a broker that is not the leader.

Follows: kafka.server.KafkaApis (KIP-951).
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.replication.partition import NO_EPOCH, NO_LEADER
from reference_broker.core.request import Request


class CurrentLeaders:
    """The leaders that one response mentions, and their endpoints on the client's listener."""

    def __init__(self, broker: Broker, request: Request) -> None:
        self._broker = broker
        self._request = request
        self._mentioned: set[int] = set()

    def current_leader(self, topic: str, index: int) -> Any:
        """Return a partition's leader and epoch, and add the leader to `endpoints`. Unknown values are -1.

        The values come from the local replica. If there is none, they come from the metadata.
        """
        partition = self._broker.replicas.get(topic, index) or self._broker.image.partition(topic, index)
        leader = NO_LEADER if partition is None else partition.leader
        self._mentioned.add(leader)
        return self._request.replies.LeaderIdAndEpoch(
            leader_id=leader, leader_epoch=NO_EPOCH if partition is None else partition.leader_epoch
        )

    def endpoints(self) -> tuple[Any, ...]:
        """Return the endpoints of the leaders that `current_leader` has returned, except for fenced brokers."""
        new, listener = self._request.replies, self._request.connection.listener
        leaders = (self._broker.image.brokers.get(node_id) for node_id in sorted(self._mentioned))
        return tuple(
            new.NodeEndpoint(node_id=node.broker_id, host=end.host, port=end.port, rack=node.rack)
            for node in leaders
            if node is not None and not node.fenced
            for end in node.end_points
            if end.name == listener
        )
