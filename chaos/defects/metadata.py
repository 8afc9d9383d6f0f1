"""Defects of metadata in brokers: images, snapshots, topic ids, configurations."""

from collections.abc import Collection
from uuid import UUID, uuid5

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.controller import topics
from reference_broker.core.controller.handlers import create_topics
from reference_broker.core.controller.topics import CreationContext, NewTopic, PlannedTopic
from reference_broker.core.handlers.cluster_view import BrokerView, ClusterView
from reference_broker.core.metadata.cluster_metadata import ClusterMetadata
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage, TopicImage
from reference_broker.core.replication.log_manager import LogManager
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from reference_broker.protocol.steps import Steps

_seeds = Area.METADATA.seeds
_advance = ClusterMetadata.advance
_apply = MetadataImage.apply
_open = ReplicaManager._open
_create_topic = topics.create_topic
_records = MetadataImage.records


@_seeds(ClusterMetadata, "advance", "quorum-committed-equal", "exception", source="KIP-595")
def apply_what_is_not_committed(self: ClusterMetadata, high_watermark: int) -> Steps[list[MetadataRecord]]:
    """A node applies its whole metadata log, even records that no majority has.

    Under another controller these records are truncated, but the broker has applied them.
    """
    return _advance(self, self._log.end_offset)


@_seeds(MetadataImage, "copy", "exception", "quorum-committed-equal", "metadata-agree")
def share_topics_with_the_controller(self: MetadataImage) -> MetadataImage:
    """The controller's image shares its topics with the image of the broker on the same node.

    Changes of the controller are visible to that broker before they are committed, and then applied a second time.
    """
    image = MetadataImage()
    image.topics, image.topics_by_id = self.topics, self.topics_by_id
    image.brokers, image.controllers = dict(self.brokers), dict(self.controllers)
    image.features = dict(self.features)
    image.next_producer_id = self.next_producer_id
    image._configs = {resource: dict(properties) for resource, properties in self._configs.items()}
    return image


@_seeds(MetadataImage, "records", "ids-unique", "metadata-agree", source="KAFKA-13357")
def leave_producer_ids_out_of_snapshots(self: MetadataImage) -> list[MetadataRecord]:
    """A snapshot lacks the next producer id.

    A node that loads it allocates ids again: two producers share an id, and brokers cannot
    distinguish their batches.
    """
    return [record for record in _records(self) if not isinstance(record, ProducerIdsRecord)]


@_seeds(MetadataImage, "records", "metadata-agree", "lost-write", source="KAFKA-13968")
def leave_configs_out_of_snapshots(self: MetadataImage) -> list[MetadataRecord]:
    """A snapshot lacks configurations.

    A node that loads it has the defaults: a topic's `min.insync.replicas` is 1 there.
    """
    return [record for record in _records(self) if not isinstance(record, ConfigRecord)]


@_seeds(create_topics, "create_topic", "phantom-read", "log-matching", "ids-unique", source="KIP-516")
def make_the_topic_id_from_the_name(image: MetadataImage, topic: NewTopic, context: CreationContext) -> PlannedTopic:
    """A topic that is created again has the id that it had before.

    A broker that was down meanwhile uses the old topic's log for the new one. Consumers of the new topic read records
    of the old one.
    """
    named = CreationContext(context.configuration, lambda: uuid5(UUID(int=0), topic.name), context.random_below)
    return _create_topic(image, topic, named)


@_seeds(LogManager, "delete", "phantom-read", "log-matching", "segments-fit-log", "no-stray-logs", source="KAFKA-13972")
def forget_to_delete_logs(
    self: LogManager, gone: Collection[tuple[str, int]], remaining: Collection[Partition]
) -> None:
    """The log of a removed replica stays on disk.

    If the replica is reassigned to this broker again, it begins with these old records, which other replicas may have
    truncated meanwhile.
    """


@_seeds(
    MetadataImage,
    "apply",
    "one-leader-per-epoch",
    "phantom-read",
    "metadata/topic-id-names-one-creation",
    "record-effect",
    source="KIP-516, KAFKA-12257",
)
def remember_the_ids_of_deleted_topics(self: MetadataImage, record: MetadataRecord) -> None:
    """The id of a deleted topic continues to refer to its name.

    A producer with the old topic's id writes to the new topic of that name.
    """
    removed = self.topics_by_id.get(record.topic_id) if isinstance(record, RemoveTopicRecord) else None
    _apply(self, record)
    if removed is not None:
        self.topics_by_id[removed.topic_id] = TopicImage(removed.name, removed.topic_id, removed.partitions)


@_seeds(ReplicaManager, "_open", "watermark-on-min-isr", "lost-write", "configs-applied")
def forget_settings_at_a_restart(self: ReplicaManager, topic: TopicImage, index: int, now: Now) -> Partition:
    """A replica that is opened has the broker's default for `min.insync.replicas`, not the topic's.

    After a restart acks=all is acknowledged by fewer replicas than the topic requires.
    """
    partition = _open(self, topic, index, now)
    partition.min_insync_replicas = self._configuration.topic({}).integer("min.insync.replicas")
    return partition


@_seeds(ReplicaManager, "_assigned", "not-converged", "unavailable", "replicas-assigned")
def follow_one_partition_per_change(
    self: ReplicaManager, delta: MetadataDelta
) -> list[tuple[TopicImage, PartitionRecord]]:
    """If one commit changes several partitions, a broker applies only the first.

    When a broker is fenced, all partitions that it leads get a new leader in one commit. The new leaders of most of
    these partitions do not learn that they lead.
    """
    image = self._image()
    partitions = ((topic_id, index) for topic_id, indices in delta.partitions.items() for index in indices)
    changed = sorted(partitions, key=lambda key: (key[0].int, key[1]))[:1] if not delta.everything else []
    found = [(image.topics_by_id[topic_id], index) for topic_id, index in changed if topic_id in image.topics_by_id]
    if delta.everything:
        found = [(topic, index) for topic in image.topics.values() for index in topic.partitions]
    pairs = [(topic, topic.partitions[index]) for topic, index in found if index in topic.partitions]
    return [(topic, record) for topic, record in pairs if self._context.node_id in record.replicas]


@_seeds(ClusterView, "brokers", "membership/dead-broker-leaves-and-returns", source="KAFKA-15220")
def list_fenced_brokers(self: ClusterView, *, with_fenced: bool = False) -> list[BrokerView]:
    """Metadata lists brokers that are fenced.

    Clients connect to brokers that are down.
    """
    return list(self._brokers.values())
