"""Metadata (3), versions 0-13: brokers, topics, partitions and their leaders.

Follows: kafka.server.KafkaApis (KIP-430, KIP-516, KIP-590).

- The response lists the brokers that are not fenced and have the client's listener, with their endpoints on this
  listener. The controller id is the id of a broker that forwards requests to the controller.
- All topics are selected by an empty list in version 0, and by null in later versions.
- Unknown name: UNKNOWN_TOPIC_OR_PARTITION(3); the topic is created if `auto.create.topics.enable` and the request (from
  version 4) permit it. Invalid name: INVALID_TOPIC_EXCEPTION(17).
- A topic that is requested twice is returned once, as in Kafka.
- From version 12 topics can have ids. If one of them has an id, the topics with only a name are ignored. Unknown id:
  UNKNOWN_TOPIC_ID(100) without a name (KIP-516). Kafka never supported ids and null names in versions 10 and 11: all
  topics of such a request have INVALID_REQUEST(42).
- A partition without a leader: LEADER_NOT_AVAILABLE(5). A leader without the listener: LISTENER_NOT_FOUND(72), before
  version 6 LEADER_NOT_AVAILABLE(5). Version 0 omits replicas on brokers that are not listed. The partition then has
  REPLICA_NOT_AVAILABLE(9), unless it has another error.
- If authorized operations are requested, the response has all operations, since there is no authorizer (KIP-430).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.cluster_view import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, ClusterView
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.request import Request
from reference_broker.core.topic_names import INTERNAL_TOPICS, illegal_topic_name
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import Replies
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.protocol.steps import Pace, Steps

_OPERATIONS_NOT_REQUESTED = -(2**31)


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Return the cluster and the requested topics."""
    new, body = request.replies, request.body
    if 10 <= request.api_version < 12 and any(topic.name is None or topic.topic_id for topic in body.topics or ()):
        errors = (_error(new, topic.name or "", topic.topic_id, ErrorCode.invalid_request) for topic in body.topics)
        return new.MetadataResponse(brokers=(), topics=tuple(errors))
    view = ClusterView(broker.image, request.connection.listener)
    cluster_operations = getattr(body, "include_cluster_authorized_operations", False)
    topics = yield from _topics(broker, request, view, now)
    return new.MetadataResponse(
        brokers=tuple(
            new.MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in view.brokers()
        ),
        cluster_id=broker.identity.cluster_id,
        controller_id=view.controller(broker.identity.node_id),
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if cluster_operations else _OPERATIONS_NOT_REQUESTED,
        error_code=ErrorCode.none,
    )


def _topics(broker: Broker, request: Request, view: ClusterView, now: Now) -> Steps[tuple[Any, ...]]:
    requested = request.body.topics
    if requested is None or (not requested and request.api_version == 0):
        return (yield from _in_steps(partial(_topic, request, view), tuple(view.image.topics.values())))
    topic_ids = dict.fromkeys(topic.topic_id for topic in requested if getattr(topic, "topic_id", None))
    if topic_ids:  # then names are ignored
        return (yield from _in_steps(partial(_topic_by_id, request, view), topic_ids))
    names = dict.fromkeys(topic.name for topic in requested)
    _create_missing(broker, request, names, now)
    return (yield from _in_steps(partial(_topic_by_name, request, view), names))


def _in_steps(describe: Callable[[Any], Any], requested: Iterable[Any]) -> Steps[tuple[Any, ...]]:
    topics = []
    pace = Pace()
    for topic in requested:
        if pace.is_due():
            yield
        topics.append(describe(topic))
        pace.elements += len(topics[-1].partitions)
    return tuple(topics)


def _create_missing(broker: Broker, request: Request, names: dict[str | None, None], now: Now) -> None:
    is_allowed = getattr(request.body, "allow_auto_topic_creation", True)
    if is_allowed and broker.configuration.value("auto.create.topics.enable"):
        broker.topic_creation.create(
            [
                name
                for name in names
                if name is not None and name not in broker.image.topics and illegal_topic_name(name) is None
            ],
            now,
        )


def _topic_by_id(request: Request, view: ClusterView, topic_id: Any) -> Any:
    topic = view.image.topics_by_id.get(topic_id)
    if topic is None:
        return _error(request.replies, None, topic_id, ErrorCode.unknown_topic_id)
    return _topic(request, view, topic)


def _topic_by_name(request: Request, view: ClusterView, name: str | None) -> Any:
    if name is None or illegal_topic_name(name) is not None:
        return _error(request.replies, name, None, ErrorCode.invalid_topic_exception)
    topic = view.image.topics.get(name)
    if topic is None:
        return _error(request.replies, name, None, ErrorCode.unknown_topic_or_partition)
    return _topic(request, view, topic)


def _topic(request: Request, view: ClusterView, topic: TopicImage) -> Any:
    with_operations = getattr(request.body, "include_topic_authorized_operations", False)
    return request.replies.MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(request, view, record) for record in topic.partitions.values()),
        topic_authorized_operations=TOPIC_OPERATIONS if with_operations else _OPERATIONS_NOT_REQUESTED,
    )


def _partition(request: Request, view: ClusterView, record: PartitionRecord) -> Any:
    partition = view.partition(record)
    replicas, isr = record.replicas, record.isr
    if request.api_version == 0:
        replicas, isr = (tuple(filter(view.is_alive, nodes)) for nodes in (replicas, isr))
    error = ErrorCode.none
    if partition.leader != record.leader or record.leader < 0:
        has_listener_error = partition.leader_registered and request.api_version >= 6
        error = ErrorCode.listener_not_found if has_listener_error else ErrorCode.leader_not_available
    elif (replicas, isr) != (record.replicas, record.isr):
        error = ErrorCode.replica_not_available
    return request.replies.MetadataResponsePartition(
        error_code=error,
        partition_index=record.partition_id,
        leader_id=partition.leader,
        leader_epoch=record.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=partition.offline,
    )


def _error(new: Replies, name: str | None, topic_id: Any, error: ErrorCode) -> Any:
    return new.MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS, partitions=()
    )
