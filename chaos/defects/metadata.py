"""Defects of cluster metadata: images, snapshots, topic ids, configurations, and their use by brokers."""

from collections.abc import Collection
from dataclasses import replace
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
_assigned = ReplicaManager._assigned
_create_topic = topics.create_topic
_records = MetadataImage.records


@_seeds(ClusterMetadata, "advance", "quorum-committed-equal", "exception", source="KIP-595")
def apply_what_is_not_committed(self: ClusterMetadata, high_watermark: int) -> Steps[list[MetadataRecord]]:
    """A node applies its whole metadata log, including records that are not committed.

    A new controller may never commit these records. Then they are truncated, but the node has already applied them.
    """
    return _advance(self, self._log.end_offset)


@_seeds(MetadataImage, "copy", "exception", "quorum-committed-equal", "metadata-agree")
def share_topics_with_the_controller(self: MetadataImage) -> MetadataImage:
    """The controller's image shares its topics with the image of the broker on the same node.

    The broker sees the controller's changes before they are committed, and applies them again after the commit.
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
    """A snapshot does not contain the next producer id.

    A controller that has loaded it allocates the same ids again. Two producers then share an id, and brokers cannot
    distinguish their batches.
    """
    return [record for record in _records(self) if not isinstance(record, ProducerIdsRecord)]


@_seeds(MetadataImage, "records", "metadata-agree", "lost-write", source="KAFKA-13968")
def leave_configs_out_of_snapshots(self: MetadataImage) -> list[MetadataRecord]:
    """A snapshot does not contain configurations.

    A node that has loaded it uses the defaults: for example, `min.insync.replicas` of every topic is 1.
    """
    return [record for record in _records(self) if not isinstance(record, ConfigRecord)]


@_seeds(create_topics, "create_topic", "phantom-read", "log-matching", "ids-unique", source="KIP-516")
def make_the_topic_id_from_the_name(image: MetadataImage, topic: NewTopic, context: CreationContext) -> PlannedTopic:
    """A topic that is deleted and created again has the same id as before.

    A broker that was down when the topic was deleted uses the old log for the new topic, so consumers of the new topic
    read records of the old one.
    """
    with_id_from_name = replace(context, new_uuid=lambda: uuid5(UUID(int=0), topic.name))
    return _create_topic(image, topic, with_id_from_name)


@_seeds(LogManager, "delete", "phantom-read", "log-matching", "segments-fit-log", "no-stray-logs", source="KAFKA-13972")
def forget_to_delete_logs(
    self: LogManager, gone: Collection[tuple[str, int]], remaining: Collection[Partition]
) -> None:
    """The log of a removed replica stays on disk.

    If the partition is later assigned to this broker again, the new replica begins with the old records, although the
    other replicas may have truncated them.
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
    """The id of a deleted topic still resolves to the name of that topic.

    If a new topic has this name, a producer that uses the old id writes to the new topic.
    """
    removed = self.topics_by_id.get(record.topic_id) if isinstance(record, RemoveTopicRecord) else None
    _apply(self, record)
    if removed is not None:
        self.topics_by_id[removed.topic_id] = TopicImage(removed.name, removed.topic_id, removed.partitions)


@_seeds(ReplicaManager, "_open", "watermark-on-min-isr", "lost-write", "configs-applied")
def forget_settings_at_a_restart(self: ReplicaManager, topic: TopicImage, index: int, now: Now) -> Partition:
    """When a broker opens a replica, it uses its own default of `min.insync.replicas` instead of the topic's value.

    After a restart, records sent with acks=all are acknowledged although fewer replicas are in sync than the topic
    requires.
    """
    partition = _open(self, topic, index, now)
    partition.min_insync_replicas = self._configuration.topic({}).integer("min.insync.replicas")
    return partition


@_seeds(ReplicaManager, "_assigned", "not-converged", "unavailable", "replicas-assigned")
def follow_one_partition_per_change(
    self: ReplicaManager, delta: MetadataDelta
) -> list[tuple[TopicImage, PartitionRecord]]:
    """If one commit changes several partitions, a broker applies only one of these changes.

    When a broker is fenced, one commit elects new leaders for all partitions that it led. Most of these leaders do not
    learn that they lead.
    """
    changed = sorted((topic_id, index) for topic_id, indices in delta.partitions.items() for index in indices)
    return _assigned(self, replace(delta, partitions={topic_id: (index,) for topic_id, index in changed[:1]}))


@_seeds(ClusterView, "brokers", "membership/dead-broker-leaves-and-returns", source="KAFKA-15220")
def list_fenced_brokers(self: ClusterView, *, with_fenced: bool = False) -> list[BrokerView]:
    """A Metadata response contains fenced brokers.

    Clients connect to brokers that are down.
    """
    return list(self._brokers.values())
