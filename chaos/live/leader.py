"""A raw client that follows the leader of a partition wherever it moves."""

from typing import Final

from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.raw import RawClient
from fixtures.clients.recorded import RecordedRawClient

REQUEST_TIMEOUT_S: Final = 5.0


class LeaderConnection:
    """One process of the history that talks to the leader of a partition, by one connection at a time."""

    def __init__(self, surroundings: Surroundings, partition: int) -> None:
        self._surroundings = surroundings
        self._partition = partition
        self._process = next(surroundings.processes)
        self._asked = 0
        self._client: RecordedRawClient | None = None

    def client(self) -> RecordedRawClient | None:
        """The leader's, as the metadata of one node after another has it; null where that node knows of none."""
        if self._client is None:
            nodes = self._surroundings.target.nodes
            self._asked += 1
            with self._connect(nodes[self._asked % len(nodes)].id) as guide:
                leader = self._leader_by(guide)
            if leader is not None:
                self._client = self._connect(leader)
        return self._client

    def forget(self) -> None:
        """It is not the leader, or not there: look for the leader again."""
        if self._client is not None:
            self._client.client.close()
        self._client = None

    def _leader_by(self, guide: RecordedRawClient) -> int | None:
        response = guide.metadata([self._surroundings.topic]).response
        nodes = {node.id for node in self._surroundings.target.nodes}
        for of_topic in response.topics if response is not None else ():
            for of_partition in of_topic.partitions:
                if of_partition.partition_index == self._partition and of_partition.leader_id in nodes:
                    return int(of_partition.leader_id)
        return None

    def _connect(self, node: int) -> RecordedRawClient:
        host, port = next((each.host, each.port) for each in self._surroundings.target.nodes if each.id == node)
        return RecordedRawClient(
            RawClient(host, port, timeout_s=REQUEST_TIMEOUT_S, transport=self._surroundings.target.transport),
            self._surroundings.recorder,
            self._process,
            topic_ids=self._surroundings.topic_ids,
            node=node,
        )
