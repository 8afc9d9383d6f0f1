"""In-memory state of the cluster's metadata, changed one record at a time by `apply`.

Follows: org.apache.kafka.image.MetadataImage (KIP-500).

The image depends only on the applied records: a replay of the whole log and a snapshot with the later records result in
the same image. `records` is the inverse of `apply`: it returns the records of a snapshot.

A partition is stored as a `PartitionRecord`, and a broker as a `RegisterBrokerRecord`. A later change replaces the
stored record by an updated copy. Records are immutable, so an image shares them with its copies.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.topic_names import collision_key
from reference_broker.protocol.metadata_records import (
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

_T = TypeVar("_T")

CLUSTER_DEFAULT = ""
"""Name of the broker resource whose properties are the dynamic defaults of all brokers."""
_UNCHANGED_RECOVERY_STATE = -1


@dataclass(slots=True)
class TopicImage:
    """A topic with the current state of its partitions by index."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)


class MetadataImage:
    """State of the cluster after a number of records."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[UUID, TopicImage] = {}
        self._names_by_collision_key: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self._configs: dict[tuple[int, str], dict[str, str]] = {}

    # Queries

    def overrides(self, resource_type: int, name: str) -> dict[str, str]:
        """Return the properties that are set on a resource."""
        return self._configs.get((resource_type, name), {})

    def topic_overrides(self, name: str) -> dict[str, str]:
        """Return the properties that are set on a topic."""
        return self.overrides(ResourceType.TOPIC, name)

    def partition(self, topic: str, index: int) -> PartitionRecord | None:
        """Return a partition, or null if it does not exist."""
        image = self.topics.get(topic)
        return None if image is None else image.partitions.get(index)

    def colliding_topic(self, name: str) -> str | None:
        """Return the oldest topic whose name collides with this one, or null."""
        return next(iter(self._names_by_collision_key.get(collision_key(name), ())), None)

    def _add(self, topic: TopicImage) -> None:
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
        self._names_by_collision_key[collision_key(topic.name)][topic.name] = None

    def _remove(self, topic_id: UUID) -> TopicImage:
        topic = self.topics_by_id.pop(topic_id)
        del self.topics[topic.name]
        names = self._names_by_collision_key[collision_key(topic.name)]
        del names[topic.name]
        if not names:
            del self._names_by_collision_key[collision_key(topic.name)]
        return topic

    def partition_by_id(self, topic_id: UUID, index: int) -> PartitionRecord | None:
        """Return a partition by topic id, or null if it does not exist."""
        image = self.topics_by_id.get(topic_id)
        return None if image is None else image.partitions.get(index)

    def partitions(self) -> Iterator[PartitionRecord]:
        """Yield every partition."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def partitions_in(self, indices: Mapping[UUID, Iterable[int]]) -> Iterator[tuple[TopicImage, PartitionRecord]]:
        """Yield topic and record of the given partitions, if they exist.

        :param indices: partition indices by topic id.
        """
        for topic_id, wanted in indices.items():
            topic = self.topics_by_id.get(topic_id)
            if topic is not None:
                yield from ((topic, found) for index in wanted if (found := topic.partitions.get(index)) is not None)

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker may lead and be in an ISR: registered, not fenced, not in controlled shutdown (KIP-841)."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def copy(self) -> "MetadataImage":
        """Return an equal image that changes independently."""
        image = MetadataImage()
        for topic in self.topics.values():
            image._add(TopicImage(topic.name, topic.topic_id, dict(topic.partitions)))
        image.brokers = dict(self.brokers)
        image.controllers = dict(self.controllers)
        image.features = dict(self.features)
        image.next_producer_id = self.next_producer_id
        image._configs = {resource: dict(properties) for resource, properties in self._configs.items()}
        return image

    def records(self) -> list[MetadataRecord]:
        """Return records that create an equal image; features come first, as in Kafka's snapshots."""
        records: list[MetadataRecord] = [
            FeatureLevelRecord(name=name, feature_level=level) for name, level in self.features.items()
        ]
        records += self.brokers.values()
        records += self.controllers.values()
        for topic in self.topics.values():
            records.append(TopicRecord(name=topic.name, topic_id=topic.topic_id))
            records += topic.partitions.values()
        records += (
            ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
            for (resource_type, resource_name), properties in self._configs.items()
            for name, value in properties.items()
        )
        if self.next_producer_id:
            records.append(ProducerIdsRecord(broker_id=-1, next_producer_id=self.next_producer_id))
        return records

    # Changes

    def apply(self, record: MetadataRecord) -> None:
        """Apply the next record of the log."""
        match record:
            case TopicRecord():
                self._add(TopicImage(record.name, record.topic_id))
            case PartitionRecord():
                self.topics_by_id[record.topic_id].partitions[record.partition_id] = _with_directories(record)
            case PartitionChangeRecord():
                partitions = self.topics_by_id[record.topic_id].partitions
                partitions[record.partition_id] = changed(partitions[record.partition_id], record)
            case RemoveTopicRecord():
                removed = self._remove(record.topic_id)
                self._configs.pop((ResourceType.TOPIC, removed.name), None)
            case ConfigRecord():
                self._apply_config(record)
            case FeatureLevelRecord():
                self._apply_feature(record)
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case RegisterControllerRecord():
                self.controllers[record.controller_id] = record
            case _:
                self._apply_to_broker(record)

    def _apply_to_broker(self, record: MetadataRecord) -> None:
        match record:
            case RegisterBrokerRecord():
                self.brokers[record.broker_id] = record
            case UnregisterBrokerRecord():
                self._registered(record.broker_id, record.broker_epoch)
                del self.brokers[record.broker_id]
            case FenceBrokerRecord():
                self.brokers[record.id] = replace(self._registered(record.id, record.epoch), fenced=True)
            case UnfenceBrokerRecord():
                self.brokers[record.id] = replace(self._registered(record.id, record.epoch), fenced=False)
            case BrokerRegistrationChangeRecord():
                broker = self._registered(record.broker_id, record.broker_epoch)
                self.brokers[record.broker_id] = replace(
                    broker,
                    fenced=record.fenced > 0 if record.fenced else broker.fenced,
                    in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
                    log_dirs=record.log_dirs or broker.log_dirs,
                    cordoned_log_dirs=(
                        broker.cordoned_log_dirs if record.cordoned_log_dirs is None else record.cordoned_log_dirs
                    ),
                )

    def _registered(self, broker_id: int, broker_epoch: int) -> RegisterBrokerRecord:
        broker = self.brokers[broker_id]
        assert broker.broker_epoch == broker_epoch, f"a record of another registration of broker {broker_id}"
        return broker

    def _apply_feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _apply_config(self, record: ConfigRecord) -> None:
        properties = self._configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            properties.pop(record.name, None)
        else:
            properties[record.name] = record.value


def changed(partition: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """Return the partition after a change."""
    has_leader_change = change.leader != NO_LEADER_CHANGE
    recovery_state = change.leader_recovery_state
    return _with_directories(
        PartitionRecord(
            partition_id=partition.partition_id,
            topic_id=partition.topic_id,
            replicas=_new(change.replicas, partition.replicas),
            isr=_new(change.isr, partition.isr),
            removing_replicas=_new(change.removing_replicas, partition.removing_replicas),
            adding_replicas=_new(change.adding_replicas, partition.adding_replicas),
            leader=change.leader if has_leader_change else partition.leader,
            leader_recovery_state=(
                partition.leader_recovery_state if recovery_state == _UNCHANGED_RECOVERY_STATE else recovery_state
            ),
            leader_epoch=partition.leader_epoch + has_leader_change,
            partition_epoch=partition.partition_epoch + 1,
            directories=_new(change.directories, partition.directories),
            eligible_leader_replicas=_new(change.eligible_leader_replicas, partition.eligible_leader_replicas),
            last_known_elr=_new(change.last_known_elr, partition.last_known_elr),
        )
    )


def _new(value: _T | None, before: _T) -> _T:
    return before if value is None else value


def _with_directories(partition: PartitionRecord) -> PartitionRecord:
    """Return the partition with null directories (`DirectoryId.MIGRATING`) if its record has none (before KIP-858)."""
    if partition.directories:
        return partition
    return replace(partition, directories=(None,) * len(partition.replicas))
