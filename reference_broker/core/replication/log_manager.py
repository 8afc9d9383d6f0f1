"""Logs in this broker's log directory, and the checkpoint files beside them.

Follows: org.apache.kafka.storage.internals.log.LogManager (KIP-516).

Each replica has a directory `<topic>-<index>` with its log and a file `partition.metadata`. That file has the topic id,
so that the log is never used for a later topic of the same name (KIP-516).

Logs are opened when the metadata is known. Stray logs are then deleted. A log is stray if its replica was removed from
this broker while the broker was down.

Three checkpoint files have the recovery point, the log start offset and the high watermark of each log. All three are
written periodically, when logs are deleted, and at a clean shutdown. Recovery points and log start offsets are also
written before segments are deleted, and when a log is truncated below its checkpointed recovery point. The entries of
logs that are not opened yet stay as they were read.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import TopicConfiguration
from reference_broker.core.disk import Disk
from reference_broker.core.log.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_offsets,
    write_offsets,
)
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.unified_log import UnifiedLog, close_logs
from reference_broker.core.replication.partition import Partition
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.protocol.record_batch import Codec
from reference_broker.protocol.uuids import format_uuid

_PARTITION_METADATA = "partition.metadata"


class LogManager:
    """The logs and checkpoint files of one log directory.

    :param clean: whether the last shutdown was clean.
    """

    def __init__(self, disk: Disk, *, clean: bool) -> None:
        self._disk = disk
        self._clean = clean
        self._recovery_points = read_offsets(disk, RECOVERY_POINT_FILE)
        self._log_starts = read_offsets(disk, LOG_START_FILE)
        self._high_watermarks = read_offsets(disk, HIGH_WATERMARK_FILE)
        self._to_delete: dict[tuple[str, int], None] = {}
        """The deleted logs whose directories may still exist, in the order of deletion."""

    def high_watermark(self, topic: str, index: int) -> int:
        """Return the checkpointed high watermark; 0 for a new log."""
        return self._high_watermarks.get((topic, index), 0)

    def open(self, topic: str, topic_id: UUID, index: int, config: LogConfig, now: Now) -> UnifiedLog:
        """Open a log, or create an empty one. The log of an earlier topic with this name is deleted."""
        directory = f"{topic}-{index}"
        if self._has_other_topic_id(directory, topic_id):
            self.delete([(topic, index)], ())
        if (topic, index) in self._to_delete:
            del self._to_delete[topic, index]
            self._delete_directory(topic, index)
        log = UnifiedLog.open(
            self._disk,
            directory,
            config,
            now.wall_ms,
            clean=self._clean,
            recovery_point=self._recovery_points.get((topic, index), 0),
            log_start_offset=self._log_starts.get((topic, index), 0),
        )
        if not self._disk.exists(f"{directory}/{_PARTITION_METADATA}"):
            self._disk.replace(f"{directory}/{_PARTITION_METADATA}", _partition_metadata(topic_id))
        return log

    def _has_other_topic_id(self, directory: str, topic_id: UUID) -> bool:
        """Whether a log belongs to a topic that was deleted and created again while this broker was down."""
        path = f"{directory}/{_PARTITION_METADATA}"
        if not self._disk.exists(path):
            return False
        found = self._disk.read(path, 0, self._disk.size(path)).split()
        return bool(found) and found[-1] != format_uuid(topic_id).encode()

    def delete_strays(self, remaining: Collection[Partition]) -> None:
        """Delete the logs of replicas that were removed while this broker was down.

        :param remaining: all current replicas of this broker.
        """
        current = {partition.key for partition in remaining}
        known = {*self._on_disk(), *self._recovery_points, *self._high_watermarks}
        if strays := sorted(known - current):
            self.delete(strays, remaining)

    def _on_disk(self) -> Iterator[tuple[str, int]]:
        """Yield topic and index of each log directory."""
        for name in self._disk.list(""):
            topic, _, index = name.rpartition("-")
            is_replica = topic not in {"", CLUSTER_METADATA_TOPIC} and index.isdecimal() and str(int(index)) == index
            if is_replica and self._disk.exists(f"{name}/{_PARTITION_METADATA}"):
                yield topic, int(index)

    def delete(self, gone: Collection[tuple[str, int]], remaining: Collection[Partition]) -> None:
        """Delete logs. Their checkpoint entries are deleted now, and never used for a later topic of the same name.

        Their directories are deleted later: by `delete_directories`, or before a log of the same name is opened.

        :param gone: topic and index of the logs.
        :param remaining: the replicas that this broker keeps.
        """
        if not self._recovery_points.keys().isdisjoint(gone):
            _remove_offsets(gone, self._recovery_points, self._log_starts)
            self.checkpoint(remaining)
        if not self._high_watermarks.keys().isdisjoint(gone):
            _remove_offsets(gone, self._high_watermarks)
            write_offsets(self._disk, HIGH_WATERMARK_FILE, self._high_watermarks)
        self._to_delete |= dict.fromkeys(gone)

    def delete_directories(self, count: int) -> bool:
        """Delete at most `count` directories of deleted logs. Return whether any are left."""
        for topic, index in tuple(islice(self._to_delete, count)):
            del self._to_delete[topic, index]
            self._delete_directory(topic, index)
        return bool(self._to_delete)

    def _delete_directory(self, topic: str, index: int) -> None:
        """Delete the directory of a log. There is none if the log had only checkpoint entries."""
        if self._disk.exists(f"{topic}-{index}"):
            self._disk.delete_directory(f"{topic}-{index}")

    def checkpoint(self, partitions: Iterable[Partition]) -> None:
        """Update recovery points and log start offsets from these partitions, and write those of all logs."""
        for partition in partitions:
            self._recovery_points[partition.key] = partition.log.recovery_point
            self._log_starts[partition.key] = partition.log_start_offset
        write_offsets(self._disk, RECOVERY_POINT_FILE, self._recovery_points)
        write_offsets(self._disk, LOG_START_FILE, self._log_starts)

    def checkpoint_if_truncated(self, partition: Partition) -> None:
        """Write the checkpoints if records below the checkpointed recovery point were removed (`truncateTo`).

        After a crash, records below the checkpointed recovery point are not validated. If it stayed above the log end
        offset, records appended later would not be validated, even if they were never flushed.
        """
        if partition.log.recovery_point < self._recovery_points.get(partition.key, 0):
            self.checkpoint([partition])

    def checkpoint_high_watermarks(self, partitions: Iterable[Partition]) -> None:
        """Update high watermarks from these partitions, and write those of all logs if one has changed."""
        high_watermarks = self._high_watermarks | {partition.key: partition.high_watermark for partition in partitions}
        if high_watermarks != self._high_watermarks:
            self._high_watermarks = high_watermarks
            write_offsets(self._disk, HIGH_WATERMARK_FILE, high_watermarks)

    def close(self, partitions: Collection[Partition]) -> None:
        """Delete the directories of deleted logs, flush and close all other logs, and write the checkpoints."""
        self.delete_directories(len(self._to_delete))
        close_logs(self._disk, (partition.log for partition in partitions))
        self.checkpoint(partitions)
        self.checkpoint_high_watermarks(partitions)


def _remove_offsets(gone: Iterable[tuple[str, int]], *offsets: dict[tuple[str, int], int]) -> None:
    for entries in offsets:
        for key in gone:
            entries.pop(key, None)


def _partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}\n".encode()


def _codec(compression_type: str) -> Codec | None:
    """Return the codec of the topic; null if each batch keeps the codec of its producer."""
    match compression_type:
        case "producer":
            return None
        case "uncompressed":
            return Codec.NONE
    return Codec[compression_type.upper()]


def log_config(configuration: TopicConfiguration) -> LogConfig:
    """Return the log configuration of a topic."""
    number, text = configuration.integer, configuration.value
    return LogConfig(
        segment_bytes=number("segment.bytes"),
        segment_ms=number("segment.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        max_message_bytes=number("max.message.bytes"),
        compression_type=_codec(str(text("compression.type"))),
        cleanup_policy=frozenset(part.strip() for part in str(text("cleanup.policy")).split(",")),
        message_timestamp_type=str(text("message.timestamp.type")),
        message_timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        flush_messages=number("flush.messages"),
        producer_id_expiration_ms=configuration.broker.integer("producer.id.expiration.ms"),
    )
