"""Replicas on this broker, kept in step with the metadata.

Follows: kafka.server.ReplicaManager (KIP-500).

A change of the metadata is applied in this order:

1. Replicas that are no longer assigned to this broker are removed, all at once.
2. The remaining replicas get the new topic and broker configurations.
3. The metadata is applied to the changed replicas, first to those that lead. New replicas open their logs.
4. The fetchers send requests.

Opening a log takes several flushes. Step 3 is therefore divided among several events, as is the deletion of the
directories of removed replicas. Requests for a replica that is not open yet return NOT_LEADER_OR_FOLLOWER, as if the
metadata had reached this broker later.

Coordinators learn their partitions by a `LeadershipListener` for a topic. It is notified when this broker starts a
leader epoch as the leader of a partition of the topic, and when that leadership ends.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol
from uuid import UUID

from reference_broker.core.channels import SendToController
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import TopicConfiguration
from reference_broker.core.configuration.key import LONG_MAX
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.log.append_validation import validate
from reference_broker.core.log.unified_log import Appended
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage, TopicImage
from reference_broker.core.replication.alter_partition_manager import AlterPartitionManager
from reference_broker.core.replication.brokers import Brokers
from reference_broker.core.replication.delayed_produce import DelayedProduce
from reference_broker.core.replication.fetch_settings import FetchSettings
from reference_broker.core.replication.log_manager import LogManager, log_config
from reference_broker.core.replication.partition import ACKS_ALL, Partition, PartitionContext
from reference_broker.core.replication.replica_fetcher_manager import ReplicaFetcherManager
from reference_broker.core.runtime import Runtime
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.protocol.record_batch import Bytes
from reference_broker.protocol.steps import finish

_DELETED_PER_OPENED = 4
"""Directories that one event may delete per log that an event may open. A deletion is much faster."""
_APPLIED_PER_EVENT = 200
"""Maximum number of replicas to which one event applies the metadata. Each takes about 50 µs without opening a log."""

Committed = Callable[[ErrorCode, Now], None]
"""Callback for the result of an append: `none` if the records are committed, or an error."""


class LeadershipListener(Protocol):
    """Listener for the leadership of a topic's partitions on this broker."""

    def on_election(self, partition: Partition, now: Now) -> None:
        """Handle the start of an epoch in which this broker leads the partition."""
        ...

    def on_resignation(self, partition: Partition, now: Now) -> None:
        """Handle the end of the leadership; the replica may have been deleted."""
        ...


class ReplicaManager:
    """The replicas of a broker, by topic and index.

    :param image: returns the latest metadata image.
    :param broker_epoch: returns this broker's epoch, -1 before it is registered.
    :param on_metadata_applied: called when the latest metadata is applied to all replicas.
    :param clean: whether the last shutdown was clean.
    """

    def __init__(
        self,
        runtime: Runtime,
        image: Callable[[], MetadataImage],
        send_to_controller: SendToController,
        broker_epoch: Callable[[], int],
        *,
        on_metadata_applied: Callable[[], None],
        clean: bool,
    ) -> None:
        self._runtime = runtime
        self._configuration = runtime.configuration
        self._image = image
        self._on_metadata_applied = on_metadata_applied
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._unapplied: dict[tuple[UUID, int], None] = {}
        """Topic id and index of replicas whose metadata is not applied yet, in the order of application."""
        self._has_strays = self._is_deleting = False
        self._listeners: dict[str, LeadershipListener] = {}
        self._logs = LogManager(runtime.disk, clean=clean)
        node_id = runtime.identity.node_id
        alter_partition_manager = AlterPartitionManager(node_id, runtime.timers, send_to_controller, broker_epoch)
        self._context = PartitionContext(
            node_id=node_id,
            brokers=Brokers(image),
            lag_max_ms=self._configuration.integer("replica.lag.time.max.ms"),
            broker_epoch=broker_epoch,
            propose=alter_partition_manager.propose,
            on_progress=lambda partition, now: runtime.purgatory.check_and_complete(partition.key, now),
            on_truncated=self._logs.checkpoint_if_truncated,
            trace=runtime.trace,
        )
        settings = FetchSettings.of(node_id, self._configuration)
        self._fetchers = ReplicaFetcherManager(runtime, settings, self._locate, broker_epoch)

    def __iter__(self) -> Iterator[Partition]:
        return iter(tuple(self._partitions.values()))

    def get(self, topic: str, index: int) -> Partition | None:
        """Return a replica of this broker, or null."""
        return self._partitions.get((topic, index))

    def find(self, key: tuple[str, int]) -> Partition | ErrorCode:
        """Return a replica of this broker; an error if the partition has no replica here, or does not exist."""
        partition = self._partitions.get(key)
        if partition is not None:
            return partition
        exists = self._image().partition(*key) is not None
        return ErrorCode.not_leader_or_follower if exists else ErrorCode.unknown_topic_or_partition

    @property
    def brokers(self) -> Brokers:
        """The brokers of the metadata image."""
        return self._context.brokers

    @property
    def fetchers(self) -> ReplicaFetcherManager:
        """The fetchers of the partitions that this broker follows."""
        return self._fetchers

    def configuration(self, topic: str) -> TopicConfiguration:
        """Return the effective configuration of a topic."""
        return self._configuration.topic(self._image().topic_overrides(topic))

    def listen(self, topic: str, listener: LeadershipListener) -> None:
        """Set the listener for the leadership of a topic's partitions."""
        self._listeners[topic] = listener

    def append(self, partition: Partition, batch: Bytes, settled: Committed, *, timeout_ms: int, now: Now) -> Appended:
        """Append a batch that this broker itself creates, with acks=all.

        :param settled: called with the result, possibly before this method returns.
        :raises AppendError: the batch is invalid, this broker is not the leader, or too few replicas are in sync.
        """
        partition.check_append(ACKS_ALL)
        validated = finish(validate(batch, partition.log.config, now.wall_ms))
        appended = partition.append(validated, acks=ACKS_ALL, now=now)
        waiting = DelayedProduce(
            {partition.key: appended.last_offset + 1},
            self.find,
            lambda errors, later: settled(errors[partition.key], later),
        )
        if not self.wait(waiting, timeout_ms, now):
            settled(waiting.errors[partition.key], now)
        return appended

    def wait(self, waiting: DelayedProduce, timeout_ms: int, now: Now) -> bool:
        """Watch appended records until they are committed. If the result is known already, only return False."""
        keys = waiting.keys
        if waiting.check():
            return False
        self._runtime.purgatory.watch(waiting, keys, now.monotonic_ms + timeout_ms)
        return True

    # Metadata

    @property
    def has_unapplied_metadata(self) -> bool:
        """Whether the latest metadata is not applied yet to some replica of this broker."""
        return bool(self._unapplied)

    @property
    def is_deleting(self) -> bool:
        """Whether directories of removed replicas are not deleted yet."""
        return self._is_deleting

    def on_metadata_update(self, delta: MetadataDelta, now: Now) -> None:
        """Apply a change of the metadata, in several events if it is large. The image already contains the change."""
        self._delete([partition for partition in self._touched(delta) if not self._is_assigned(partition)], now)
        self._reconfigure(delta)
        assigned = self._assigned(delta)
        assigned.sort(key=lambda pair: pair[1].leader != self._context.node_id)
        is_scheduled = self.has_unapplied_metadata
        self._unapplied |= dict.fromkeys((topic.topic_id, record.partition_id) for topic, record in assigned)
        self._has_strays |= delta.everything
        if not is_scheduled:
            self._apply_next(now)

    def _apply_next(self, now: Now) -> None:
        """Apply the latest metadata to the next replicas, and schedule the rest."""
        opened = applied = 0
        while self._unapplied and opened < self._runtime.disk.opened_per_event and applied < _APPLIED_PER_EVENT:
            key = next(iter(self._unapplied))
            del self._unapplied[key]
            count_before = len(self._partitions)
            self._apply_latest(key, now)
            opened += len(self._partitions) - count_before
            applied += 1
        if self._unapplied:
            self._runtime.timers.set(now.monotonic_ms, self._apply_next)
        else:
            if self._has_strays:
                self._has_strays = False
                self._logs.delete_strays(self._partitions.values())
                self._begin_to_delete_directories(now)
            self._on_metadata_applied()
        self._fetchers.maybe_fetch(now)

    def _apply_latest(self, key: tuple[UUID, int], now: Now) -> None:
        """Apply the image's record of a replica, unless the image no longer assigns the replica to this broker."""
        record = self._assignment(*key)
        if record is not None:
            self._apply(self._image().topics_by_id[key[0]], record, now)

    def _touched(self, delta: MetadataDelta) -> Iterable[Partition]:
        """Return the replicas that a change may have removed from this broker."""
        if delta.everything or delta.deleted_topics:
            return self
        return [
            partition
            for topic, record in self._image().partitions_in(delta.partitions)
            if (partition := self.get(topic.name, record.partition_id)) is not None
        ]

    def _is_assigned(self, partition: Partition) -> bool:
        return self._assignment(partition.topic_id, partition.index) is not None

    def _assignment(self, topic_id: UUID, index: int) -> PartitionRecord | None:
        """Return the image's record of a partition that has a replica here, or null."""
        record = self._image().partition_by_id(topic_id, index)
        return record if record is not None and self._context.node_id in record.replicas else None

    def _assigned(self, delta: MetadataDelta) -> list[tuple[TopicImage, PartitionRecord]]:
        """Return topic and record of the changed partitions that have a replica here."""
        image, partitions = self._image(), delta.partitions
        if delta.everything:
            partitions = {topic.topic_id: topic.partitions for topic in image.topics.values()}
        changed = image.partitions_in(partitions)
        return [(topic, record) for topic, record in changed if self._context.node_id in record.replicas]

    def _apply(self, topic: TopicImage, record: PartitionRecord, now: Now) -> None:
        partition = self.get(topic.name, record.partition_id) or self._open(topic, record.partition_id, now)
        was_leader = partition.is_leader
        is_new_epoch = partition.apply(record, now)
        if is_new_epoch:
            self._fetchers.update(partition)
        listener = self._listeners.get(topic.name)
        if listener is not None and is_new_epoch:
            if partition.is_leader:
                listener.on_election(partition, now)
            elif was_leader:
                listener.on_resignation(partition, now)

    def _open(self, topic: TopicImage, index: int, now: Now) -> Partition:
        configuration = self.configuration(topic.name)
        log = self._logs.open(topic.name, topic.topic_id, index, log_config(configuration), now)
        partition = Partition(
            topic.name,
            topic.topic_id,
            index,
            log,
            self._context,
            high_watermark=self._logs.high_watermark(topic.name, index),
            min_insync_replicas=configuration.integer("min.insync.replicas"),
            flushed_at_ms=now.monotonic_ms,
        )
        self._partitions[partition.key] = partition
        return partition

    def _delete(self, gone: list[Partition], now: Now) -> None:
        if not gone:
            return
        for partition in gone:
            del self._partitions[partition.key]
            self._fetchers.remove_partition(partition.key)
        self._logs.delete([partition.key for partition in gone], self._partitions.values())
        for partition in gone:
            listener = self._listeners.get(partition.topic)
            if listener is not None and partition.is_leader:
                listener.on_resignation(partition, now)
            self._runtime.purgatory.check_and_complete(partition.key, now)
        self._begin_to_delete_directories(now)

    def _begin_to_delete_directories(self, now: Now) -> None:
        if not self._is_deleting:
            self._delete_directories(now)

    def _delete_directories(self, now: Now) -> None:
        """Delete the next directories of deleted logs, and schedule the rest."""
        count = self._runtime.disk.opened_per_event * _DELETED_PER_OPENED
        self._is_deleting = self._logs.delete_directories(count)
        if self._is_deleting:
            self._runtime.timers.set(now.monotonic_ms, self._delete_directories)

    def _reconfigure(self, delta: MetadataDelta) -> None:
        """Apply changed configurations: of topics, or of brokers, which may change the defaults of every topic."""
        topics = {name for kind, name in delta.configs if kind == ResourceType.TOPIC}
        everything = delta.everything or len(topics) < len(delta.configs)
        if everything or topics:
            for partition in self:
                if everything or partition.topic in topics:
                    configuration = self.configuration(partition.topic)
                    partition.log.config = log_config(configuration)
                    partition.min_insync_replicas = configuration.integer("min.insync.replicas")

    def _locate(self, node_id: int) -> tuple[str, int] | None:
        """Return host and port of a broker's inter-broker listener; null if the image has none."""
        broker = self._image().brokers.get(node_id)
        if broker is None:
            return None
        listener = str(self._configuration.value("inter.broker.listener.name"))
        return next(((end.host, end.port) for end in broker.end_points if end.name == listener), None)

    # Housekeeping

    def schedule(self, now: Now) -> None:
        """Schedule the periodic tasks, with the intervals of Kafka's properties.

        A task of Kafka's `LogManager` runs for the first time after `log.initial.task.delay.ms`, any other task after
        its interval.
        """
        number, delay_ms = self._configuration.integer, self._configuration.integer("log.initial.task.delay.ms")
        for period_ms, first_ms, action in (
            (number("replica.lag.time.max.ms") // 2, None, self._shrink_isrs),
            (number("replica.high.watermark.checkpoint.interval.ms"), None, self._checkpoint_high_watermarks),
            (number("log.flush.offset.checkpoint.interval.ms"), delay_ms, lambda _: self.checkpoint()),
            (number("log.flush.scheduler.interval.ms"), delay_ms, self.flush_overdue),
            (number("log.retention.check.interval.ms"), delay_ms, self.apply_retention),
            (number("producer.id.expiration.check.interval.ms"), None, self._remove_expired_producers),
        ):
            if period_ms < LONG_MAX:
                every_ms = max(period_ms, 1)
                after_ms = every_ms if first_ms is None else first_ms
                self._runtime.timers.set_periodic(now.monotonic_ms + after_ms, every_ms, action)

    def _shrink_isrs(self, now: Now) -> None:
        for partition in self:
            partition.maybe_shrink_isr(now)

    def _checkpoint_high_watermarks(self, now: Now) -> None:
        self._logs.checkpoint_high_watermarks(self._partitions.values())

    def checkpoint(self) -> None:
        """Write the checkpoints of recovery points and log start offsets."""
        self._logs.checkpoint(self._partitions.values())

    def flush_overdue(self, now: Now) -> None:
        """Flush each log whose last flush by this task was at least `flush.ms` ago."""
        for partition in self:
            since_ms = now.monotonic_ms - partition.flushed_at_ms
            if since_ms >= self.configuration(partition.topic).integer("flush.ms"):
                partition.flushed_at_ms = now.monotonic_ms
                partition.log.flush()

    def apply_retention(self, now: Now) -> None:
        """Delete segments by `retention.ms` and `retention.bytes`.

        The log start offset is made durable before segments below it are deleted.
        """
        shorter = []
        for partition in self:
            start_before = partition.log_start_offset
            if partition.log.apply_retention(now.wall_ms, partition.high_watermark):
                shorter.append(partition.log)
            if partition.log_start_offset != start_before:
                self._fetchers.rebuild_request(partition.key)
        if shorter:
            self.checkpoint()
        for log in shorter:
            log.delete_below_start()

    def _remove_expired_producers(self, now: Now) -> None:
        for partition in self:
            partition.log.remove_expired_producers(now.wall_ms)

    def close(self) -> None:
        """Flush and close every log."""
        self._logs.close(self._partitions.values())
