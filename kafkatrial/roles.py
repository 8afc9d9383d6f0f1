"""Roles of nodes: leader and ISR of a partition (Metadata), and the active controller (DescribeQuorum, KIP-595).

The same request is sent to every given node, because a node that is cut off from the others has old metadata. The
response with the highest leader epoch counts. DescribeQuorum is used because in KRaft the controller id of a Metadata
response is that of an arbitrary broker.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from fixtures.clients import requests
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient, RawClientError
from fixtures.targets.target import Node

_TIMEOUT_S = 5.0
"""Timeout of a request to one node, which may be paused."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition in a Metadata response."""

    leader_epoch: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def find_partition(nodes: Sequence[Node], topic: str, partition: int) -> PartitionMetadata | None:
    """Return the newest metadata of a partition; None if no node that responds has it."""

    def request(client: RawClient) -> list[PartitionMetadata]:
        response = client.request(requests.metadata(client.schema_for(ApiKey.METADATA), (topic,)))
        partitions = (found for described in response.topics for found in described.partitions)
        return [_partition_metadata(found) for found in partitions if found.partition_index == partition]

    versions = [each for response in _responses(nodes, request) for each in response]
    return max(versions, key=lambda metadata: metadata.leader_epoch, default=None)


def find_controller(nodes: Sequence[Node]) -> int | None:
    """Return the id of the active controller with the highest epoch; None if no node that responds has one."""

    def request(client: RawClient) -> list[tuple[int, int]]:
        response = client.request(requests.describe_quorum(client.schema_for(ApiKey.DESCRIBE_QUORUM)))
        partitions = (found for each in response.topics for found in each.partitions)
        return [(int(found.leader_epoch), int(found.leader_id)) for found in partitions if found.leader_id >= 0]

    leaders = [each for response in _responses(nodes, request) for each in response]
    return max(leaders)[1] if leaders else None


def _partition_metadata(found: Any) -> PartitionMetadata:
    return PartitionMetadata(
        leader_epoch=int(getattr(found, "leader_epoch", -1)),
        leader=int(found.leader_id) if found.leader_id >= 0 else None,
        replicas=tuple(map(int, found.replica_nodes)),
        isr=tuple(map(int, found.isr_nodes)),
    )


def _responses(nodes: Sequence[Node], request: Callable[[RawClient], T]) -> Iterator[T]:
    """Send a request to all nodes at once. Yield the results of those that respond in time and without an error."""

    def send(node: Node) -> T | None:
        try:
            with RawClient(node.host, node.port, timeout_s=_TIMEOUT_S) as client:
                return request(client)
        except RawClientError:
            return None

    if nodes:
        with ThreadPoolExecutor(len(nodes), "roles") as threads:
            yield from (response for response in threads.map(send, nodes) if response is not None)
