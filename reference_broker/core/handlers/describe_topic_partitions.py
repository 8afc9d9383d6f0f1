"""DescribeTopicPartitions (75), version 0: partitions page by page.

Follows: kafka.server.handlers.DescribeTopicPartitionsRequestHandler (KIP-966).

- Topics are sorted by name; an empty list selects all. Unknown topic: UNKNOWN_TOPIC_OR_PARTITION(3). Invalid name:
  INVALID_TOPIC_EXCEPTION(17).
- A page has at most `response_partition_limit` partitions. A limit below 1 counts as 1. A limit above 2000 counts as
  2000, Kafka's default of `max.request.partition.size.limit`. If there are more partitions, the response has a cursor,
  from which the next request continues.
- A cursor with a negative partition, or for a topic that is not among the requested ones: INVALID_REQUEST(42) for each
  requested topic.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.cluster_view import TOPIC_OPERATIONS, ClusterView
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.request import Request
from reference_broker.core.topic_names import INTERNAL_TOPICS, illegal_topic_name
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Pace, Steps

_PARTITIONS_MAX = 2000


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Return one page of partitions, and the cursor of the next."""
    new, cursor = request.replies, request.body.cursor
    view = ClusterView(broker.image, request.connection.listener)
    names = sorted({topic.name for topic in request.body.topics} or view.image.topics)
    first = 0
    if cursor is not None:
        is_other_topic = request.body.topics and cursor.topic_name not in names
        if is_other_topic or cursor.partition_index < 0:
            return _invalid_cursor(request)
        names = [name for name in names if name >= cursor.topic_name]
        first = cursor.partition_index if names[:1] == [cursor.topic_name] else 0
    remaining = max(min(_PARTITIONS_MAX, request.body.response_partition_limit), 1)
    topics = []
    next_cursor = None
    pace = Pace()
    for name in names:
        if pace.is_due():
            yield
        if not remaining:
            next_cursor = new.Cursor(topic_name=name, partition_index=0)
            break
        topic = view.image.topics.get(name)
        indexes = range(0) if topic is None else range(first, min(len(topic.partitions), first + remaining))
        topics.append(_topic(request, view, name, topic, indexes))
        if topic is not None and indexes.stop < len(topic.partitions):
            next_cursor = new.Cursor(topic_name=name, partition_index=indexes.stop)
            break
        remaining -= len(indexes)
        pace.elements += len(indexes)
        first = 0
    return new.DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor)


def _invalid_cursor(request: Request) -> Any:
    new = request.replies
    return new.DescribeTopicPartitionsResponse(
        topics=tuple(
            new.DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.invalid_request, name=topic.name, topic_id=None, partitions=()
            )
            for topic in request.body.topics
        )
    )


def _topic(request: Request, view: ClusterView, name: str, topic: TopicImage | None, indexes: range) -> Any:
    error = ErrorCode.none
    if topic is None:
        illegal = illegal_topic_name(name) is not None
        error = ErrorCode.invalid_topic_exception if illegal else ErrorCode.unknown_topic_or_partition
    return request.replies.DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        topic_id=None if topic is None else topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=() if topic is None else tuple(_partition(request, view, topic, index) for index in indexes),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(request: Request, view: ClusterView, topic: TopicImage, index: int) -> Any:
    partition = view.partition(topic.partitions[index])
    record = partition.record
    return request.replies.DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.none,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=record.leader_epoch,
        replica_nodes=record.replicas,
        isr_nodes=record.isr,
        eligible_leader_replicas=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
        offline_replicas=partition.offline,
    )
