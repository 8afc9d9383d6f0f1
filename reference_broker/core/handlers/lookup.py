"""Conversions of request elements: topics by name or by id (KIP-516), partitions, and timestamps."""

from datetime import UTC, datetime
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.errors import ErrorCode


def find_topic(broker: Broker, topic: Any) -> TopicImage | ErrorCode:
    """Return the topic that a request's element names by `topic_id`, `name` or `topic`; an error if it is unknown."""
    if hasattr(topic, "topic_id"):
        return broker.image.topics_by_id.get(topic.topic_id, ErrorCode.unknown_topic_id)
    name = topic.name if hasattr(topic, "name") else topic.topic
    return broker.image.topics.get(name, ErrorCode.unknown_topic_or_partition)


def find_partition(broker: Broker, topic: TopicImage | ErrorCode, index: int) -> Partition | ErrorCode:
    """Return this broker's replica of a partition, or the error if it has none."""
    if isinstance(topic, ErrorCode):
        return topic
    return broker.replicas.find((topic.name, index))


def as_datetime(timestamp_ms: int) -> datetime | None:
    """Return a timestamp as kio represents it; null for -1."""
    return None if timestamp_ms < 0 else datetime.fromtimestamp(timestamp_ms / 1000, UTC)
