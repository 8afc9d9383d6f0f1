"""Raw clients that follow the leader of a partition, or the coordinator of a group, when it moves."""

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.raw import RawClient
from fixtures.clients.recorded import RecordedRawClient
from fixtures.clients.recorded_connection import RecordedConnection
from fixtures.clients.recorded_group import RecordedGroupClient

REQUEST_TIMEOUT_S: Final = 5.0

Client = TypeVar("Client", bound=RecordedConnection)


class FollowingConnection(ABC, Generic[Client]):
    """A process of the history with one connection at a time, to the node that has a role."""

    _client_class: type[Client]

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._process = next(context.processes)
        self._lookups = 0
        self._client: Client | None = None

    def client(self) -> Client | None:
        """Return a client of the node with the role, looked up at one node after the other; None if there is none."""
        if self._client is None:
            nodes = self._context.target.nodes
            self._lookups += 1
            with self._connect(nodes[self._lookups % len(nodes)].id) as guide:
                found = self._look_up(guide)
            if found in {node.id for node in nodes}:
                self._client = self._connect(found)
        return self._client

    def forget(self) -> None:
        """Close the connection; the next call of `client` looks the node up again."""
        if self._client is not None:
            self._client.client.close()
        self._client = None

    @abstractmethod
    def _look_up(self, guide: Client) -> int | None:
        """Return the node that has the role by this node's response."""

    def _connect(self, node: int) -> Client:
        host, port = next((each.host, each.port) for each in self._context.target.nodes if each.id == node)
        return self._client_class(
            RawClient(host, port, timeout_s=REQUEST_TIMEOUT_S, transport=self._context.target.transport),
            self._context.recorder,
            self._process,
            topic_ids=self._context.topic_ids,
            node=node,
        )


class LeaderConnection(FollowingConnection[RecordedRawClient]):
    """Connection to the leader of a partition by Metadata."""

    _client_class = RecordedRawClient

    def __init__(self, context: TrialContext, partition: int) -> None:
        super().__init__(context)
        self._partition = partition

    def _look_up(self, guide: RecordedRawClient) -> int | None:
        response = guide.metadata([self._context.topic]).response
        for topic in response.topics if response is not None else ():
            for partition in topic.partitions:
                if partition.partition_index == self._partition:
                    return int(partition.leader_id)
        return None


class CoordinatorConnection(FollowingConnection[RecordedGroupClient]):
    """Connection to the coordinator of a group."""

    _client_class = RecordedGroupClient

    def __init__(self, context: TrialContext, group: str) -> None:
        super().__init__(context)
        self._group = group

    def _look_up(self, guide: RecordedGroupClient) -> int | None:
        return guide.find_coordinator(self._group)
