"""What a broker tells of the cluster is what its metadata say as it answers: `answer-of-metadata`.

| question                | what is held against the broker's image                                                  |
|-------------------------|------------------------------------------------------------------------------------------|
| Metadata                | the brokers that live, at the addresses of the client's listener; of what was asked for, |
|                         | once each: id, name, error, partitions with leader, epoch, replicas, ISR, who is offline; |
|                         | operations only for who asks for them (KIP-430, KIP-516)                                 |
| DescribeTopicPartitions | the same; a page is as long as it may be, and the cursor goes on behind it (KIP-966)     |
| DescribeCluster         | the brokers, fenced ones for who asks for them (KIP-700, KIP-1073)                       |
| DescribeConfigs         | each resource once; a property that the resource sets, as it sets it, and none that it   |
|                         | does not; synonyms for who asks for them, the one in force first (KIP-133, KIP-226)      |
| FindCoordinator         | the leader of the group's partition, or that there is none                               |
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage, TopicImage
from reference_broker.core.request import Request
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC, INTERNAL_TOPICS, illegal_topic_name
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord, RegisterBrokerRecord
from reference_broker.simulation.invariants.topic_decisions import Claim
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_METADATA, _FIND_COORDINATOR, _DESCRIBE_CONFIGS, _DESCRIBE_CLUSTER, _DESCRIBE_TOPIC_PARTITIONS = 3, 10, 32, 60, 75
_NOT_ASKED: Final = -(2**31)
_OF_TOPICS, _OF_CLUSTER = 0b1101_1111_1000, 0b1_1111_1010_0000
"""All operations on a topic, and on a cluster, as bits."""
_NO_NODE: Final = -1
_GROUP: Final = 0
_PAGE_MAX: Final = 2_000
_TOPIC: Final = 2
_DYNAMIC_TOPIC: Final = 1
_BROKER_ENDPOINT: Final = 1


def check_metadata_answer(watched: Watched, event: ResponseSent) -> None:
    """See the table. Raises `InvariantViolation`."""
    request, response = event.request, event.body
    claims = _CLAIMS.get(request.api_key)
    if claims is None or watched.node is None or watched.node.broker is None or request.connection.is_controller:
        return
    seen = _Seen(watched, request)
    for what, said, is_so in claims(seen, request, response):
        if said != is_so:
            detail = (
                f"{type(response).__name__} of node {watched.node_id}: {what} is told as {said!r}, and is {is_so!r}"
            )
            raise InvariantViolation("answer-of-metadata", detail)


class _Seen:
    """The cluster as a client of one listener may see it.

    :ivar reachable: the brokers with that listener, by id, fenced ones too.
    :ivar alive: of these who is not fenced.
    """

    def __init__(self, watched: Watched, request: Request) -> None:
        assert watched.node is not None
        self.node_id = watched.node_id
        self.cluster_id = watched.node.runtime.identity.cluster_id
        self.image: MetadataImage = watched.node.metadata.image
        self.reachable: dict[int, tuple[str, int, RegisterBrokerRecord]] = {}
        for broker_id, broker in sorted(self.image.brokers.items()):
            for endpoint in broker.end_points:
                if endpoint.name == request.connection.listener:
                    self.reachable[broker_id] = endpoint.host, endpoint.port, broker
        self.alive = [broker_id for broker_id, (*_, broker) in self.reachable.items() if not broker.fenced]

    def controller(self, told: int) -> Iterator[Claim]:
        """Whom a client may take for the controller: this broker, while it lives."""
        if self.node_id in self.alive:
            yield "controller_id", told, self.node_id
        else:
            yield (
                "controller_id, of a broker that lives",
                told in self.alive or (told, self.alive) == (_NO_NODE, []),
                True,
            )

    def leader(self, record: PartitionRecord) -> int:
        """Who leads, if the client can reach it."""
        return record.leader if record.leader in self.reachable else _NO_NODE

    def placed(self, where: str, told: Any, record: PartitionRecord) -> Iterator[Claim]:
        """What Metadata and DescribeTopicPartitions tell of a partition alike."""
        offline = tuple(replica for replica in record.replicas if replica not in self.alive)
        said = (
            told.leader_id,
            getattr(told, "leader_epoch", record.leader_epoch),
            getattr(told, "offline_replicas", offline),
        )
        is_so = self.leader(record), record.leader_epoch, offline
        yield f"{where}: leader_id, leader_epoch, offline_replicas", said, is_so


def _operations(entity: Any, field: str, *, is_asked: bool, everything: int) -> Iterator[Claim]:
    if hasattr(entity, field):
        yield field, getattr(entity, field), everything if is_asked else _NOT_ASKED


# --- topics and partitions


def _of_metadata(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    asked, version = request.body.topics, request.api_version
    if 10 <= version < 12 and any(topic.name is None or topic.topic_id for topic in asked or ()):
        yield "errors", {topic.error_code for topic in response.topics}, {ErrorCode.invalid_request}
        return
    told = [(each.node_id, each.host, each.port, getattr(each, "rack", None)) for each in response.brokers]
    racks = hasattr(response.brokers[0], "rack") if response.brokers else False
    alive = [(node, *seen.reachable[node][:2], seen.reachable[node][2].rack if racks else None) for node in seen.alive]
    yield "brokers", told, alive
    if hasattr(response, "cluster_id"):
        yield "cluster_id", response.cluster_id, seen.cluster_id
    if hasattr(response, "controller_id"):
        yield from seen.controller(response.controller_id)
    is_asked = getattr(request.body, "include_cluster_authorized_operations", False)
    yield from _operations(response, "cluster_authorized_operations", is_asked=is_asked, everything=_OF_CLUSTER)
    by_id = [topic.topic_id for topic in asked or () if getattr(topic, "topic_id", None)]
    if asked is None or (version == 0 and not asked):
        yield "topics", sorted(topic.name for topic in response.topics), sorted(seen.image.topics)
    elif by_id:
        yield "topic ids", [topic.topic_id for topic in response.topics], by_id
    else:
        yield "topics", [topic.name for topic in response.topics], list(dict.fromkeys(topic.name for topic in asked))
    for topic in response.topics:
        yield from _of_topic(seen, request, topic, by_id=bool(by_id))


def _of_topic(seen: _Seen, request: Request, told: Any, *, by_id: bool) -> Iterator[Claim]:
    known = seen.image.topics_by_id.get(told.topic_id) if by_id else seen.image.topics.get(told.name)
    yield f"{told.name}: error", told.error_code, _error(told, known, by_id=by_id)
    is_internal = told.name in INTERNAL_TOPICS
    yield f"{told.name}: is_internal", getattr(told, "is_internal", is_internal), is_internal
    if known is None:
        yield f"{told.name}: partitions", told.partitions, ()
        return
    yield "name", told.name, known.name
    yield f"{told.name}: topic_id", getattr(told, "topic_id", known.topic_id), known.topic_id
    is_asked = getattr(request.body, "include_topic_authorized_operations", False)
    yield from _operations(told, "topic_authorized_operations", is_asked=is_asked, everything=_OF_TOPICS)
    indexes = [part.partition_index for part in told.partitions]
    yield f"{told.name}: partitions", sorted(indexes), sorted(known.partitions)
    for part in told.partitions:
        record, where = known.partitions[part.partition_index], f"{told.name}-{part.partition_index}"
        yield from seen.placed(where, part, record)
        if request.api_version:
            is_so = record.replicas, record.isr, _error_of(seen, request, record)
            yield f"{where}: replicas, ISR, error", (part.replica_nodes, part.isr_nodes, part.error_code), is_so


def _error(told: Any, known: TopicImage | None, *, by_id: bool) -> ErrorCode:
    if known is not None:
        return ErrorCode.none
    if by_id:
        return ErrorCode.unknown_topic_id
    is_illegal = told.name is None or illegal_topic_name(told.name) is not None
    return ErrorCode.invalid_topic_exception if is_illegal else ErrorCode.unknown_topic_or_partition


def _error_of(seen: _Seen, request: Request, record: PartitionRecord) -> ErrorCode:
    if seen.leader(record) != _NO_NODE:
        return ErrorCode.none
    is_elsewhere = record.leader in seen.image.brokers and request.api_version >= 6
    return ErrorCode.listener_not_found if is_elsewhere else ErrorCode.leader_not_available


def _of_pages(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    asked, cursor = request.body.topics, request.body.cursor
    names = sorted({topic.name for topic in asked} or seen.image.topics)
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in names)):
        yield "errors", [topic.error_code for topic in response.topics], [ErrorCode.invalid_request] * len(asked)
        return
    places: list[tuple[str, int | None]] = []
    for name in names:
        if cursor is None or name >= cursor.topic_name:
            first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
            known = seen.image.topics.get(name)
            places += [
                (name, index) for index in sorted(() if known is None else known.partitions) if index >= first
            ] or [(name, None)]
    told: list[tuple[str, int | None]] = []
    for topic in response.topics:
        told += [(topic.name, part.partition_index) for part in topic.partitions] or [(topic.name, None)]
        yield from _of_page_topic(seen, topic)
    yield "partitions", told, places[: len(told)]
    limit = max(min(_PAGE_MAX, request.body.response_partition_limit), 1)
    room = limit - sum(index is not None for _, index in told)
    rest = places[len(told) :]
    yield "more than may be", room >= 0, True
    yield "less than might be", bool(rest) and room > 0, False
    on = response.next_cursor
    said = None if on is None else (on.topic_name, on.partition_index)
    yield "next_cursor", said, (rest[0][0], rest[0][1] or 0) if rest else None


def _of_page_topic(seen: _Seen, told: Any) -> Iterator[Claim]:
    known = seen.image.topics.get(told.name)
    yield f"{told.name}: error", told.error_code, _error(told, known, by_id=False)
    yield f"{told.name}: is_internal", told.is_internal, told.name in INTERNAL_TOPICS
    if known is None:
        return
    yield f"{told.name}: topic_id", told.topic_id, known.topic_id
    for part in told.partitions:
        record, where = known.partitions[part.partition_index], f"{told.name}-{part.partition_index}"
        yield from seen.placed(where, part, record)
        yield f"{where}: replicas, ISR", (part.replica_nodes, part.isr_nodes), (record.replicas, record.isr)
        eligible = record.eligible_leader_replicas or (), record.last_known_elr or ()
        yield f"{where}: eligible", (part.eligible_leader_replicas, part.last_known_elr), eligible


# --- the cluster


def _of_cluster(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    if getattr(request.body, "endpoint_type", _BROKER_ENDPOINT) != _BROKER_ENDPOINT:
        yield "refused", response.error_code is not ErrorCode.none, True
        return
    yield "cluster_id", response.cluster_id, seen.cluster_id
    yield from seen.controller(response.controller_id)
    with_fenced = getattr(request.body, "include_fenced_brokers", False)
    told = [(each.broker_id, each.host, each.port, each.rack) for each in response.brokers]
    nodes = list(seen.reachable) if with_fenced else seen.alive
    yield "brokers", told, [(node, *seen.reachable[node][:2], seen.reachable[node][2].rack) for node in nodes]
    for each in response.brokers:
        yield (
            f"{each.broker_id}: is_fenced",
            getattr(each, "is_fenced", each.broker_id not in seen.alive),
            (each.broker_id not in seen.alive),
        )
    is_asked = request.body.include_cluster_authorized_operations
    yield from _operations(response, "cluster_authorized_operations", is_asked=is_asked, everything=_OF_CLUSTER)


def _of_coordinators(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    body = request.body
    several = hasattr(body, "coordinator_keys")
    keys, told = (body.coordinator_keys, response.coordinators) if several else ((body.key,), (response,))
    if several:
        yield "keys", tuple(each.key for each in told), tuple(keys)
    for key, each in zip(keys, told, strict=True):
        if getattr(body, "key_type", _GROUP) != _GROUP:
            yield f"{key}: error", each.error_code, ErrorCode.invalid_request
            continue
        topic = seen.image.topics.get(CONSUMER_OFFSETS_TOPIC)
        leader = _NO_NODE if topic is None else topic.partitions[_hash(key) % len(topic.partitions)].leader
        if leader in seen.alive:
            place = leader, *seen.reachable[leader][:2]
            yield f"{key}: coordinator", (each.error_code, each.node_id, each.host, each.port), (ErrorCode.none, *place)
        else:
            found = ErrorCode.coordinator_not_available, _NO_NODE
            yield f"{key}: coordinator", (each.error_code, each.node_id), found


def _hash(key: str) -> int:
    """Java's hash of a string without its sign, as Kafka's `GroupMetadataManager` takes it (`Utils.abs`)."""
    data = key.encode("utf-16-be")
    units = [256 * high + low for high, low in zip(data[::2], data[1::2], strict=True)]
    value: int = sum(unit * 31**power for power, unit in enumerate(reversed(units))) % 2**32
    return min(value, 2**32 - value) % 2**31


# --- properties


def _of_configs(seen: _Seen, request: Request, response: Any) -> Iterator[Claim]:
    asked = request.body.resources
    told = [(result.resource_type, result.resource_name) for result in response.results]
    yield "resources", told, [(resource.resource_type, resource.resource_name) for resource in asked]
    with_synonyms = getattr(request.body, "include_synonyms", False)
    for resource, result in zip(asked, response.results, strict=False):
        where = result.resource_name
        names = [config.name for config in result.configs]
        yield f"{where}: properties once each", len(set(names)), len(names)
        if resource.configuration_keys:
            yield f"{where}: properties unasked", set(names) - set(resource.configuration_keys), set()
        if result.error_code is not ErrorCode.none:
            yield f"{where}: properties with an error", names, []
        for config in result.configs:
            first = config.synonyms[0] if with_synonyms and config.synonyms else None
            yield f"{where}: synonyms", bool(config.synonyms) and not with_synonyms, False
            if first is not None:
                yield f"{where}: source of {config.name}", config.config_source, first.source
        if resource.resource_type == _TOPIC:
            yield from _of_topic_configs(seen, resource, result)


def _of_topic_configs(seen: _Seen, resource: Any, result: Any) -> Iterator[Claim]:
    name = resource.resource_name
    if name not in seen.image.topics:
        yield f"{name}: there", result.error_code is not ErrorCode.none, True
        return
    yield f"{name}: error", result.error_code, ErrorCode.none
    own = seen.image.overrides(_TOPIC, name)
    told = {config.name: config.value for config in result.configs if config.config_source == _DYNAMIC_TOPIC}
    wanted: Sequence[str] = resource.configuration_keys or tuple(own)
    yield f"{name}: own properties", told, {key: value for key, value in own.items() if key in wanted}


_CLAIMS: Final[dict[int, Callable[[_Seen, Request, Any], Iterator[Claim]]]] = {
    _METADATA: _of_metadata,
    _FIND_COORDINATOR: _of_coordinators,
    _DESCRIBE_CONFIGS: _of_configs,
    _DESCRIBE_CLUSTER: _of_cluster,
    _DESCRIBE_TOPIC_PARTITIONS: _of_pages,
}
