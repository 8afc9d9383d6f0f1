"""What the cluster is, as the metadata log tells it. It changes by `apply` alone, one record at a time (KIP-500).

A broker that replays the log from its start comes to the same image as one that followed it, so a restart needs nothing
but the log.
"""

from dataclasses import dataclass, field
from uuid import UUID

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)


@dataclass(slots=True)
class TopicImage:
    """A topic that exists. Its partitions are by index, each as its last record says."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)


class MetadataImage:
    """The state of the cluster after some number of records."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[UUID, TopicImage] = {}
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self._configs: dict[tuple[int, str], dict[str, str]] = {}

    def topic_overrides(self, name: str) -> dict[str, str]:
        """The properties that a topic itself sets."""
        return self._configs.get((ResourceType.TOPIC, name), {})

    def partition(self, topic: str, index: int) -> PartitionRecord | None:
        """A partition that exists."""
        image = self.topics.get(topic)
        return None if image is None else image.partitions.get(index)

    def apply(self, record: MetadataRecord) -> None:
        """Take in the next record of the log."""
        match record:
            case TopicRecord():
                topic = TopicImage(record.name, record.topic_id)
                self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
            case PartitionRecord():
                self.topics_by_id[record.topic_id].partitions[record.partition_id] = record
            case RemoveTopicRecord():
                removed = self.topics_by_id.pop(record.topic_id)
                del self.topics[removed.name]
                self._configs.pop((ResourceType.TOPIC, removed.name), None)
            case ConfigRecord():
                self._apply_config(record)
            case RegisterBrokerRecord():
                self.brokers[record.broker_id] = record
            case FeatureLevelRecord():
                self.features[record.name] = record.feature_level
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id

    def _apply_config(self, record: ConfigRecord) -> None:
        properties = self._configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            properties.pop(record.name, None)
        else:
            properties[record.name] = record.value
