"""Keys of the changed parts of the metadata image, so that a broker processes only these parts.

Follows: org.apache.kafka.image.MetadataDelta (KIP-500).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
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
    """Keys of the changed parts of the image.

    :param partitions: indices of new and changed partitions by topic id, even if the topic is deleted later.
    :param deleted_topics: ids of deleted topics.
    :param configs: type and name of resources with changed properties.
    :param brokers: ids of brokers with changed registrations.
    :param everything: whether any part may have changed, for example after a snapshot replaced the image; the other
        fields are then empty.
    """

    partitions: Mapping[UUID, Collection[int]] = field(default_factory=dict)
    deleted_topics: frozenset[UUID] = frozenset()
    configs: frozenset[tuple[int, str]] = frozenset()
    brokers: frozenset[int] = frozenset()
    everything: bool = False

    @classmethod
    def of(cls, records: Iterable[MetadataRecord]) -> "MetadataDelta":
        """Return the keys of the parts that these records change."""
        partitions: defaultdict[UUID, dict[int, None]] = defaultdict(dict)
        deleted_topics, configs, brokers = set(), set(), set()
        for record in records:
            match record:
                case PartitionRecord() | PartitionChangeRecord():
                    partitions[record.topic_id][record.partition_id] = None
                case RemoveTopicRecord():
                    deleted_topics.add(record.topic_id)
                case ConfigRecord():
                    configs.add((record.resource_type, record.resource_name))
                case RegisterBrokerRecord() | UnregisterBrokerRecord() | BrokerRegistrationChangeRecord():
                    brokers.add(record.broker_id)
                case FenceBrokerRecord() | UnfenceBrokerRecord():
                    brokers.add(record.id)
        return cls(partitions, frozenset(deleted_topics), frozenset(configs), frozenset(brokers))
