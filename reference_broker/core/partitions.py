"""The partitions that the metadata places on this broker, kept in step with it.

Each has a directory `<topic>-<index>` with its log, and in it a `partition.metadata` that names its topic id, so that a
log is never taken for that of a later topic of the same name (KIP-516).

Three checkpoints lie beside the directories: how far each log is flushed, where it starts, and its high watermark. They
are written now and then and at a clean stop, whose last act is the marker that says that no log needs recovery.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration, TopicConfiguration
from reference_broker.core.disk import Disk
from reference_broker.core.log.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_offsets,
    write_offsets,
)
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.metadata.image import MetadataImage, TopicImage
from reference_broker.core.partition import Partition
from reference_broker.protocol.uuids import format_uuid


class Partitions:
    """The partitions of one log directory, by topic and index.

    :param clean: the last run stopped cleanly.
    """

    def __init__(self, disk: Disk, configuration: BrokerConfiguration, image: MetadataImage, *, clean: bool) -> None:
        self._disk = disk
        self._clean = clean
        self._recovery_points = read_offsets(disk, RECOVERY_POINT_FILE)
        self._log_starts = read_offsets(disk, LOG_START_FILE)
        self._configuration = configuration
        self._image = image
        self._partitions: dict[tuple[str, int], Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(tuple(self._partitions.values()))

    def get(self, topic: str, index: int) -> Partition | None:
        """A partition that is here."""
        return self._partitions.get((topic, index))

    def configuration(self, topic: str) -> TopicConfiguration:
        """The properties in force for a topic."""
        return self._configuration.topic(self._image.topic_overrides(topic))

    def synchronise(self, now: Now) -> list[Partition]:
        """Open what the image has and this does not; delete, and return, what the image no longer has."""
        deleted = [partition for partition in self if partition.topic_id not in self._image.topics_by_id]
        self._delete(deleted)
        for topic in self._image.topics.values():
            for index, record in topic.partitions.items():
                if (topic.name, index) not in self._partitions:
                    self._open(topic, index, record.leader_epoch, now)
        return deleted

    def _open(self, topic: TopicImage, index: int, leader_epoch: int, now: Now) -> None:
        directory = f"{topic.name}-{index}"
        self._clear_if_other_topic(directory, topic.topic_id)
        log = PartitionLog.open(
            self._disk,
            directory,
            log_config(self.configuration(topic.name)),
            now.wall_ms,
            clean=self._clean,
            recovery_point=self._recovery_points.get((topic.name, index), 0),
            log_start_offset=self._log_starts.get((topic.name, index), 0),
        )
        self._partitions[topic.name, index] = Partition(
            topic.name, topic.topic_id, index, leader_epoch, log, flushed_at_ms=now.monotonic_ms
        )
        if not self._disk.exists(f"{directory}/partition.metadata"):
            self._disk.replace(f"{directory}/partition.metadata", _partition_metadata(topic.topic_id))

    def _clear_if_other_topic(self, directory: str, topic_id: UUID) -> None:
        """A log of another topic id is left of a topic that was deleted while this broker was down."""
        path = f"{directory}/partition.metadata"
        if self._disk.exists(path):
            found = self._disk.read(path, 0, self._disk.size(path))
            if found != _partition_metadata(topic_id):
                self._disk.delete_directory(directory)

    def _delete(self, partitions: Sequence[Partition]) -> None:
        """The checkpoints go first: what they say must never be taken for a later topic of the same name."""
        for partition in partitions:
            del self._partitions[partition.key]
        if not self._recovery_points.keys().isdisjoint(partition.key for partition in partitions):
            self.checkpoint()
        for partition in partitions:
            partition.log.close(clean=False)
            self._disk.delete_directory(f"{partition.topic}-{partition.index}")

    def checkpoint(self) -> None:
        """Write the three checkpoints."""
        self._recovery_points = {partition.key: partition.log.recovery_point for partition in self}
        self._log_starts = {partition.key: partition.log.log_start_offset for partition in self}
        high_watermarks = {partition.key: partition.high_watermark for partition in self}
        write_offsets(self._disk, RECOVERY_POINT_FILE, self._recovery_points)
        write_offsets(self._disk, LOG_START_FILE, self._log_starts)
        write_offsets(self._disk, HIGH_WATERMARK_FILE, high_watermarks)

    def flush_overdue(self, now: Now) -> None:
        """Flush the logs that hold something unflushed for longer than their `flush.ms`."""
        for partition in self:
            since_ms = now.monotonic_ms - partition.flushed_at_ms
            if since_ms >= self.configuration(partition.topic).integer("flush.ms"):
                partition.flushed_at_ms = now.monotonic_ms
                partition.log.flush()

    def apply_retention(self, now: Now) -> None:
        """Let go of what time and size say."""
        for partition in self:
            partition.log.apply_retention(now.wall_ms, partition.high_watermark)

    def close(self) -> None:
        """Flush every log and let go of its files."""
        for partition in self:
            partition.log.close(clean=True)
        self.checkpoint()


def _partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}\n".encode()


def log_config(configuration: TopicConfiguration) -> LogConfig:
    """What a log heeds of its topic's properties."""
    number, text = configuration.integer, configuration.value
    return LogConfig(
        segment_bytes=number("segment.bytes"),
        segment_ms=number("segment.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        max_message_bytes=number("max.message.bytes"),
        cleanup_policy=frozenset(part.strip() for part in str(text("cleanup.policy")).split(",")),
        message_timestamp_type=str(text("message.timestamp.type")),
        message_timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        flush_messages=number("flush.messages"),
        producer_id_expiration_ms=configuration.broker.integer("producer.id.expiration.ms"),
    )
