"""What some records have changed, so that a broker or a controller looks at this much only."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from reference_broker.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)


@dataclass(frozen=True, slots=True)
class MetadataDelta:
    """The keys of what has changed.

    :param partitions: topic id and index of those that were made or changed; of a topic deleted later too.
    :param deleted_topics: topic ids.
    :param configs: type and name of resources.
    :param brokers: ids.
    :param everything: a snapshot took the place of the whole image; the sets are empty.
    """

    partitions: frozenset[tuple[UUID, int]] = frozenset()
    deleted_topics: frozenset[UUID] = frozenset()
    configs: frozenset[tuple[int, str]] = frozenset()
    brokers: frozenset[int] = frozenset()
    everything: bool = False

    @classmethod
    def of(cls, records: Iterable[MetadataRecord]) -> "MetadataDelta":
        """What these records change."""
        partitions, deleted_topics, configs, brokers = set(), set(), set(), set()
        for record in records:
            match record:
                case PartitionRecord() | PartitionChangeRecord():
                    partitions.add((record.topic_id, record.partition_id))
                case RemoveTopicRecord():
                    deleted_topics.add(record.topic_id)
                case ConfigRecord():
                    configs.add((record.resource_type, record.resource_name))
                case RegisterBrokerRecord() | UnregisterBrokerRecord() | BrokerRegistrationChangeRecord():
                    brokers.add(record.broker_id)
                case FenceBrokerRecord() | UnfenceBrokerRecord():
                    brokers.add(record.id)
        return cls(frozenset(partitions), frozenset(deleted_topics), frozenset(configs), frozenset(brokers))
