"""What a broker returns of other brokers is what its metadata image has at that moment: `answer-of-metadata`.

Only what changes with faults is compared; the rest of these responses is specified by requirements, on clusters that
are whole (`conformance/requirements/metadata.py`, `configs.py`).

| response                | what is compared with the broker's image                                                |
|-------------------------|-----------------------------------------------------------------------------------------|
| Metadata                | the brokers that are not fenced, at the addresses of the client's listener; of each     |
|                         | partition the leader, its epoch, replicas, ISR, offline replicas and error              |
| DescribeTopicPartitions | the same of each partition, and the eligible leader replicas (KIP-966)                  |
| DescribeCluster         | the brokers, fenced ones if they are requested (KIP-700, KIP-1073)                      |
| FindCoordinator         | the leader of the group's partition, or that there is none                              |
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Request
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord, RegisterBrokerRecord
from reference_broker.simulation.invariants.topic_decisions import Claim
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_METADATA, _FIND_COORDINATOR, _DESCRIBE_CLUSTER, _DESCRIBE_TOPIC_PARTITIONS = 3, 10, 60, 75
_NO_NODE: Final = -1
_GROUP: Final = 0
_BROKER_ENDPOINT: Final = 1


def check_metadata_answer(watched: Watched, event: ResponseSent) -> None:
    """See the table. Raises `InvariantViolation`."""
    request, response = event.request, event.body
    claims = _CLAIMS.get(request.api_key)
    if claims is None or watched.node is None or watched.node.broker is None or request.connection.is_controller:
        return
    for what, returned, expected in claims(_Seen(watched, request), request, response):
        if returned != expected:
            sent = f"{type(response).__name__} of node {watched.node_id}"
            raise InvariantViolation("answer-of-metadata", f"{sent}: {what} is {returned!r}, not {expected!r}")


class _Seen:
    """The cluster as a client of one listener may see it.

    :ivar reachable: the brokers with that listener, by id, fenced ones too.
    :ivar alive: those of them that are not fenced.
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

    def listed(self, nodes: Iterable[int]) -> list[tuple[int, str, int]]:
        """Ids and addresses."""
        return [(node, *self.reachable[node][:2]) for node in nodes]

    def controller(self, returned: int) -> Iterator[Claim]:
        """A client may take this broker for the controller while it is not fenced, else any that is not."""
        allowed = [self.node_id] if self.node_id in self.alive else self.alive or [_NO_NODE]
        yield f"controller_id among {allowed}", returned in allowed, True

    def partition(self, where: str, returned: Any, record: PartitionRecord) -> Iterator[Claim]:
        """What Metadata and DescribeTopicPartitions return alike."""
        leader = record.leader if record.leader in self.reachable else _NO_NODE
        offline = tuple(replica for replica in record.replicas if replica not in self.alive)
        found = (
            returned.leader_id,
            getattr(returned, "leader_epoch", record.leader_epoch),
            getattr(returned, "offline_replicas", offline),
        )
        yield f"{where}: leader_id, leader_epoch, offline_replicas", found, (leader, record.leader_epoch, offline)


def _metadata(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    if 10 <= request.api_version < 12 and not response.brokers:
        return  # INVALID_REQUEST as a whole
    yield "brokers", [(each.node_id, each.host, each.port) for each in response.brokers], seen.listed(seen.alive)
    if hasattr(response, "controller_id"):
        yield from seen.controller(response.controller_id)
    for topic in response.topics:
        known = seen.image.topics.get(topic.name)
        if known is None:
            continue
        for part in topic.partitions:
            record, where = known.partitions[part.partition_index], f"{topic.name}-{part.partition_index}"
            yield from seen.partition(where, part, record)
            if request.api_version:
                expected = record.replicas, record.isr, _error(seen, request, record)
                yield f"{where}: replicas, ISR, error", (part.replica_nodes, part.isr_nodes, part.error_code), expected


def _error(seen: _Seen, request: Request, record: PartitionRecord) -> ErrorCode:
    if record.leader in seen.reachable:
        return ErrorCode.none
    is_elsewhere = record.leader in seen.image.brokers and request.api_version >= 6
    return ErrorCode.listener_not_found if is_elsewhere else ErrorCode.leader_not_available


def _topic_partitions(seen: _Seen, _request: Request, response: Any) -> Iterator[Claim]:
    for topic in response.topics:
        known = seen.image.topics.get(topic.name)
        if known is None:
            continue
        for part in topic.partitions:
            record, where = known.partitions[part.partition_index], f"{topic.name}-{part.partition_index}"
            yield from seen.partition(where, part, record)
            yield f"{where}: replicas, ISR", (part.replica_nodes, part.isr_nodes), (record.replicas, record.isr)
            eligible = record.eligible_leader_replicas or (), record.last_known_elr or ()
            yield f"{where}: eligible", (part.eligible_leader_replicas, part.last_known_elr), eligible


def _cluster(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    if getattr(request.body, "endpoint_type", _BROKER_ENDPOINT) != _BROKER_ENDPOINT:
        return
    yield from seen.controller(response.controller_id)
    nodes = list(seen.reachable) if getattr(request.body, "include_fenced_brokers", False) else seen.alive
    yield "brokers", [(each.broker_id, each.host, each.port) for each in response.brokers], seen.listed(nodes)
    fenced = [each.broker_id for each in response.brokers if getattr(each, "is_fenced", False)]
    yield "fenced", fenced, [node for node in nodes if node not in seen.alive]


def _coordinators(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    body = request.body
    if getattr(body, "key_type", _GROUP) != _GROUP:
        return
    several = hasattr(body, "coordinator_keys")
    keys, found = (body.coordinator_keys, response.coordinators) if several else ((body.key,), (response,))
    topic = seen.image.topics.get(CONSUMER_OFFSETS_TOPIC)
    for key, each in zip(keys, found, strict=True):
        leader = _NO_NODE if topic is None else topic.partitions[_hash(key) % len(topic.partitions)].leader
        if leader in seen.alive:
            returned = each.error_code, (each.node_id, each.host, each.port)
            yield f"{key}: coordinator", returned, (ErrorCode.none, seen.listed([leader])[0])
        else:
            expected = ErrorCode.coordinator_not_available, _NO_NODE
            yield f"{key}: coordinator", (each.error_code, each.node_id), expected


def _hash(key: str) -> int:
    """Java's hash of a string without its sign, as Kafka's `GroupMetadataManager` takes it (`Utils.abs`)."""
    data = key.encode("utf-16-be")
    units = [256 * high + low for high, low in zip(data[::2], data[1::2], strict=True)]
    value: int = sum(unit * 31**power for power, unit in enumerate(reversed(units))) % 2**32
    return min(value, 2**32 - value) % 2**31


_CLAIMS: Final[dict[int, Callable[[_Seen, Request, Any], Iterator[Claim]]]] = {
    _METADATA: _metadata,
    _FIND_COORDINATOR: _coordinators,
    _DESCRIBE_CLUSTER: _cluster,
    _DESCRIBE_TOPIC_PARTITIONS: _topic_partitions,
}
