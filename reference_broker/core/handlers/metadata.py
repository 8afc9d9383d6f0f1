"""Metadata (3), versions 0-13: brokers, topics, partitions and who leads them.

- Version 0 asks for all topics with an empty list, later ones with null.
- Unknown name: UNKNOWN_TOPIC_OR_PARTITION(3), or created where `auto.create.topics.enable` and the request (version 4)
  allow it; illegal name: INVALID_TOPIC_EXCEPTION(17).
- From version 12 by topic id too; unknown id: UNKNOWN_TOPIC_ID(100) without a name (KIP-516). Ids and null names in
  versions 10 and 11 are INVALID_REQUEST(42), as Kafka never supported them there.
- Authorized operations: without an authorizer, all of them (KIP-430).

Gaps: Kafka answers a topic that it is creating with an error first and creates it meanwhile; here it exists at once.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller import ControllerError, NewTopic
from reference_broker.core.handlers.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.request import Request
from reference_broker.core.topic_names import INTERNAL_TOPICS, illegal_topic_name
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import Replies
from reference_broker.protocol.metadata_records import PartitionRecord

_OPERATIONS_NOT_ASKED = -(2**31)


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The cluster, and the topics asked for."""
    new, body = request.replies, request.body
    if 10 <= request.api_version < 12 and any(topic.name is None or topic.topic_id for topic in body.topics or ()):
        refused = (_error(new, topic.name or "", topic.topic_id, ErrorCode.invalid_request) for topic in body.topics)
        return new.MetadataResponse(brokers=(), topics=tuple(refused))
    cluster_operations = getattr(body, "include_cluster_authorized_operations", False)
    return new.MetadataResponse(
        brokers=tuple(
            new.MetadataResponseBroker(
                node_id=node.broker_id, host=node.end_points[0].host, port=node.end_points[0].port, rack=node.rack
            )
            for node in broker.image.brokers.values()
        ),
        cluster_id=broker.identity.cluster_id,
        controller_id=broker.identity.node_id,
        topics=_topics(broker, request, now),
        cluster_authorized_operations=CLUSTER_OPERATIONS if cluster_operations else _OPERATIONS_NOT_ASKED,
        error_code=ErrorCode.none,
    )


def _topics(broker: Broker, request: Request, now: Now) -> tuple[Any, ...]:
    new, asked = request.replies, request.body.topics
    operations = _OPERATIONS_NOT_ASKED
    if getattr(request.body, "include_topic_authorized_operations", False):
        operations = TOPIC_OPERATIONS
    if asked is None or (not asked and request.api_version == 0):
        return tuple(_topic(new, topic, operations) for topic in broker.image.topics.values())
    topic_ids = [topic.topic_id for topic in asked if getattr(topic, "topic_id", None)]
    if topic_ids:  # then nothing is looked for by name
        return tuple(_topic_by_id(broker, new, topic_id, operations) for topic_id in topic_ids)
    names = dict.fromkeys(topic.name for topic in asked)
    return tuple(_topic_by_name(broker, request, name, operations, now) for name in names)


def _topic_by_id(broker: Broker, new: Replies, topic_id: Any, operations: int) -> Any:
    topic = broker.image.topics_by_id.get(topic_id)
    if topic is None:
        return _error(new, None, topic_id, ErrorCode.unknown_topic_id)
    return _topic(new, topic, operations)


def _topic_by_name(broker: Broker, request: Request, name: str | None, operations: int, now: Now) -> Any:
    new = request.replies
    if name is None or illegal_topic_name(name) is not None:
        return _error(new, name, None, ErrorCode.invalid_topic_exception)
    if name not in broker.image.topics:
        error = _create(broker, request, name, now)
        if error is not ErrorCode.none:
            return _error(new, name, None, error)
    return _topic(new, broker.image.topics[name], operations)


def _create(broker: Broker, request: Request, name: str, now: Now) -> ErrorCode:
    asked = getattr(request.body, "allow_auto_topic_creation", True)
    if not (asked and broker.configuration.value("auto.create.topics.enable")):
        return ErrorCode.unknown_topic_or_partition
    try:
        if name in INTERNAL_TOPICS:
            broker.ensure_offsets_topic(now)
        else:
            broker.commit(broker.controller.plan_topic(NewTopic(name)).records, now)
    except ControllerError as error:
        return error.code
    return ErrorCode.none if name in broker.image.topics else ErrorCode.unknown_topic_or_partition


def _topic(new: Replies, topic: TopicImage, operations: int) -> Any:
    return new.MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(new, record) for record in topic.partitions.values()),
        topic_authorized_operations=operations,
    )


def _partition(new: Replies, record: PartitionRecord) -> Any:
    return new.MetadataResponsePartition(
        error_code=ErrorCode.none,
        partition_index=record.partition_id,
        leader_id=record.leader,
        leader_epoch=record.leader_epoch,
        replica_nodes=record.replicas,
        isr_nodes=record.isr,
        offline_replicas=(),
    )


def _error(new: Replies, name: str | None, topic_id: Any, error: ErrorCode) -> Any:
    return new.MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=())
