"""Agreement of responses about the cluster with the sender's metadata image: the invariant `metadata-response`.

Only fields that change with faults are compared. The requirements specify the other fields for healthy clusters
(`conformance/requirements/metadata.py`, `configs.py`).

| response                | what is compared with the broker's image                                                |
|-------------------------|-----------------------------------------------------------------------------------------|
| Metadata                | the controller id; the unfenced brokers, at the addresses of the client's listener; for |
|                         | each partition the leader, its epoch, the replicas, ISR, offline replicas and the error |
| DescribeTopicPartitions | the fields of each partition in Metadata except the error, and the eligible leader      |
|                         | replicas (KIP-966)                                                                      |
| DescribeCluster         | the controller id; the unfenced brokers, and fenced ones if they are requested          |
|                         | (KIP-700, KIP-1073)                                                                     |
| FindCoordinator         | the leader of the group's partition, or COORDINATOR_NOT_AVAILABLE if the partition has  |
|                         | no unfenced leader with the client's listener                                           |
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Request
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord, RegisterBrokerRecord
from reference_broker.simulation.invariants.admin_responses import Comparison
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_METADATA, _FIND_COORDINATOR, _DESCRIBE_CLUSTER, _DESCRIBE_TOPIC_PARTITIONS = 3, 10, 60, 75
_NO_NODE: Final = -1
_GROUP: Final = 0
_BROKER_ENDPOINT: Final = 1


def check_metadata_response(watched: Watched, event: ResponseSent) -> None:
    """Check a response that a broker is about to send.

    :raises InvariantViolation: `metadata-response`.
    """
    request, response = event.request, event.body
    compare = _COMPARISONS.get(request.api_key)
    if compare is None or watched.node is None or watched.node.broker is None or request.connection.is_controller:
        return
    for field, returned, expected in compare(_VisibleCluster(watched, request), request, response):
        if returned != expected:
            sent = f"{type(response).__name__} of node {watched.node_id}"
            raise InvariantViolation("metadata-response", f"{sent}: {field} is {returned!r}, not {expected!r}")


class _VisibleCluster:
    """The cluster as it is visible to clients of one listener.

    :ivar reachable: host, port and registration of the brokers with that listener, fenced or not, by broker id.
    :ivar alive: the ids of the reachable brokers that are not fenced.
    """

    def __init__(self, watched: Watched, request: Request) -> None:
        assert watched.node is not None
        self.node_id = watched.node_id
        self.image: MetadataImage = watched.node.metadata.image
        self.reachable: dict[int, tuple[str, int, RegisterBrokerRecord]] = {}
        for broker_id, broker in sorted(self.image.brokers.items()):
            for endpoint in broker.end_points:
                if endpoint.name == request.connection.listener:
                    self.reachable[broker_id] = endpoint.host, endpoint.port, broker
        self.alive = [broker_id for broker_id, (*_, broker) in self.reachable.items() if not broker.fenced]

    def addresses(self, nodes: Iterable[int]) -> list[tuple[int, str, int]]:
        """Return id, host and port of reachable brokers."""
        return [(node, *self.reachable[node][:2]) for node in nodes]

    def compare_controller(self, returned: int) -> Iterator[Comparison]:
        """Compare the controller id.

        An unfenced broker returns its own id. A fenced broker returns the id of any unfenced broker, or -1 if there is
        none.
        """
        allowed = [self.node_id] if self.node_id in self.alive else self.alive or [_NO_NODE]
        yield f"whether controller_id is one of {allowed}", returned in allowed, True

    def compare_partition(self, where: str, returned: Any, record: PartitionRecord) -> Iterator[Comparison]:
        """Compare the fields that Metadata and DescribeTopicPartitions have in common."""
        leader = record.leader if record.leader in self.reachable else _NO_NODE
        offline = tuple(replica for replica in record.replicas if replica not in self.alive)
        found = (
            returned.leader_id,
            getattr(returned, "leader_epoch", record.leader_epoch),
            getattr(returned, "offline_replicas", offline),
        )
        yield f"{where}: leader_id, leader_epoch, offline_replicas", found, (leader, record.leader_epoch, offline)


def _known_partitions(visible: _VisibleCluster, response: Any) -> Iterator[tuple[str, Any, PartitionRecord]]:
    """Yield name, element of the response and record of each partition in a response, unless its topic is unknown."""
    for topic in response.topics:
        if (known := visible.image.topics.get(topic.name)) is not None:
            for part in topic.partitions:
                yield f"{topic.name}-{part.partition_index}", part, known.partitions[part.partition_index]


def _compare_metadata(visible: _VisibleCluster, request: Request, response: Any) -> Iterator[Comparison]:
    if 10 <= request.api_version < 12 and not response.brokers:
        return  # the whole request was rejected with INVALID_REQUEST
    yield (
        "brokers",
        [(each.node_id, each.host, each.port) for each in response.brokers],
        visible.addresses(visible.alive),
    )
    if hasattr(response, "controller_id"):
        yield from visible.compare_controller(response.controller_id)
    for where, part, record in _known_partitions(visible, response):
        yield from visible.compare_partition(where, part, record)
        if request.api_version:
            expected = record.replicas, record.isr, _error(visible, request, record)
            yield f"{where}: replicas, ISR, error", (part.replica_nodes, part.isr_nodes, part.error_code), expected


def _error(visible: _VisibleCluster, request: Request, record: PartitionRecord) -> ErrorCode:
    if record.leader in visible.reachable:
        return ErrorCode.none
    is_elsewhere = record.leader in visible.image.brokers and request.api_version >= 6
    return ErrorCode.listener_not_found if is_elsewhere else ErrorCode.leader_not_available


def _compare_topic_partitions(visible: _VisibleCluster, _request: Request, response: Any) -> Iterator[Comparison]:
    for where, part, record in _known_partitions(visible, response):
        yield from visible.compare_partition(where, part, record)
        yield f"{where}: replicas, ISR", (part.replica_nodes, part.isr_nodes), (record.replicas, record.isr)
        eligible = record.eligible_leader_replicas or (), record.last_known_elr or ()
        yield (
            f"{where}: eligible_leader_replicas, last_known_elr",
            (part.eligible_leader_replicas, part.last_known_elr),
            eligible,
        )


def _compare_cluster(visible: _VisibleCluster, request: Request, response: Any) -> Iterator[Comparison]:
    if getattr(request.body, "endpoint_type", _BROKER_ENDPOINT) != _BROKER_ENDPOINT:
        return
    yield from visible.compare_controller(response.controller_id)
    nodes = list(visible.reachable) if getattr(request.body, "include_fenced_brokers", False) else visible.alive
    yield "brokers", [(each.broker_id, each.host, each.port) for each in response.brokers], visible.addresses(nodes)
    fenced = [each.broker_id for each in response.brokers if getattr(each, "is_fenced", False)]
    yield "fenced brokers", fenced, [node for node in nodes if node not in visible.alive]


def _compare_coordinators(visible: _VisibleCluster, request: Request, response: Any) -> Iterator[Comparison]:
    body = request.body
    if getattr(body, "key_type", _GROUP) != _GROUP:
        return
    several = hasattr(body, "coordinator_keys")
    keys, found = (body.coordinator_keys, response.coordinators) if several else ((body.key,), (response,))
    topic = visible.image.topics.get(CONSUMER_OFFSETS_TOPIC)
    for key, each in zip(keys, found, strict=True):
        leader = _NO_NODE if topic is None else topic.partitions[_hash(key) % len(topic.partitions)].leader
        if leader in visible.alive:
            returned = each.error_code, (each.node_id, each.host, each.port)
            yield f"{key}: coordinator", returned, (ErrorCode.none, visible.addresses([leader])[0])
        else:
            expected = ErrorCode.coordinator_not_available, _NO_NODE
            yield f"{key}: coordinator", (each.error_code, each.node_id), expected


def _hash(key: str) -> int:
    """Return the absolute value (`Utils.abs`) of Java's hash of a string, as Kafka's `GroupMetadataManager` does."""
    data = key.encode("utf-16-be")
    units = [256 * high + low for high, low in zip(data[::2], data[1::2], strict=True)]
    value: int = sum(unit * 31**power for power, unit in enumerate(reversed(units))) % 2**32
    return min(value, 2**32 - value) % 2**31


_COMPARISONS: Final[dict[int, Callable[[_VisibleCluster, Request, Any], Iterator[Comparison]]]] = {
    _METADATA: _compare_metadata,
    _FIND_COORDINATOR: _compare_coordinators,
    _DESCRIBE_CLUSTER: _compare_cluster,
    _DESCRIBE_TOPIC_PARTITIONS: _compare_topic_partitions,
}
