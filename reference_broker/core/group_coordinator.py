"""Group coordinator: the groups whose partition of `__consumer_offsets` this broker leads.

Follows: org.apache.kafka.coordinator.group.GroupCoordinatorService.

A group's partition is the hash of its name modulo the number of partitions. If this broker does not lead that
partition, the error is NOT_COORDINATOR(16). While the partition's log is being loaded, the error is
COORDINATOR_LOAD_IN_PROGRESS(14). If a record cannot be decoded, loading fails (`CoordinatorLoaderImpl`). Then the error
is NOT_COORDINATOR(16) until the next leader epoch, in which the partition is loaded again.

A commit is appended with acks=all, and the response is sent when the records are committed. The partition's errors are
mapped to errors of the coordinator (`_COORDINATOR_ERRORS`). Clients retry after most of them.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import mul
from types import MappingProxyType

from reference_broker.core.clock import Now
from reference_broker.core.connection import Note
from reference_broker.core.group_offsets import Commit, CoordinatorLoadError, GroupOffsets
from reference_broker.core.log.errors import AppendError
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replication.delayed_produce import DelayedProduce
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.core.runtime import Runtime
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.errors import ErrorCode, error_code
from reference_broker.protocol.group_records import OffsetCommitKey, encode_offset_commit
from reference_broker.protocol.records import KeyValue, encode_batch

Settled = Callable[[ErrorCode, Now], None]
"""Takes the error of a commit; `none` if its records are committed."""
Stable = Callable[[Mapping[int, ErrorCode], Now], None]
"""Takes the error of each awaited partition of `__consumer_offsets`, by partition index."""

_COORDINATOR_ERRORS: Mapping[ErrorCode, ErrorCode] = MappingProxyType(
    {
        ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
        ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
        ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
        ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
        ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
        ErrorCode.message_too_large: ErrorCode.unknown_server_error,
        ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
        ErrorCode.not_enough_replicas_after_append: ErrorCode.none,
    }
)
"""The error that the client receives, by the partition's error. After NOT_ENOUGH_REPLICAS_AFTER_APPEND the records are
committed, so the client receives no error."""

_TOMBSTONES_PER_EVENT = 1_000
"""Maximum number of offsets of deleted topics that one event deletes. This takes about 10 ms."""

_POWERS_OF_31 = [31**exponent & 0xFFFFFFFF for exponent in reversed(range(256))]
_UTF_16 = f"utf-16-{sys.byteorder[0]}e"


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`, which is computed over UTF-16 units."""
    units = memoryview(text.encode(_UTF_16, "surrogatepass")).cast("H")
    value = 0
    for start in range(0, len(units), len(_POWERS_OF_31)):
        part = units[start : start + len(_POWERS_OF_31)]
        powers = _POWERS_OF_31[-len(part) :]
        value = (value * 31 ** len(part) + sum(map(mul, part, powers))) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_for_group(group: str, num_partitions: int) -> int:
    """Return the partition of a group in `__consumer_offsets`. Kafka's `Utils.abs` maps the smallest integer to 0."""
    hashed = java_hash(group)
    return (0 if hashed == -(2**31) else abs(hashed)) % num_partitions


class GroupCoordinator:
    """The groups of the partitions of `__consumer_offsets` that this broker leads.

    :param image: returns the latest metadata image.
    """

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, image: Callable[[], MetadataImage]) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._image = image
        self._led: dict[int, GroupOffsets] = {}
        self._timeout_ms = runtime.configuration.integer("offsets.commit.timeout.ms")
        replicas.listen(CONSUMER_OFFSETS_TOPIC, self)

    # Leadership

    @property
    def led(self) -> Mapping[int, GroupOffsets]:
        """The committed offsets of each partition of `__consumer_offsets` that this broker leads."""
        return self._led

    def on_election(self, partition: Partition, now: Now) -> None:
        """Load a partition of `__consumer_offsets`, unless this broker led it in the previous epoch."""
        known = self._led.get(partition.index)
        if known is None or known.partition is not partition:
            self._led[partition.index] = GroupOffsets(partition)
            self._load(self._led[partition.index], now)

    def on_resignation(self, partition: Partition, now: Now) -> None:
        """Unload a partition that this broker no longer leads."""
        self._led.pop(partition.index, None)

    def _load(self, offsets: GroupOffsets, now: Now) -> None:
        """Load the next piece of the log, and schedule the rest, so that other requests do not wait."""
        index = offsets.partition.index
        if self._led.get(index) is not offsets:
            return
        try:
            offsets.load_more()
        except CoordinatorLoadError as error:
            del self._led[index]
            self._runtime.emit(Note(f"failed to load {CONSUMER_OFFSETS_TOPIC}-{index}: {error}"))
            return
        if not offsets.is_loaded:
            self._runtime.timers.set(now.monotonic_ms, lambda later: self._load(offsets, later))

    def on_metadata_update(self, delta: MetadataDelta, now: Now) -> None:
        """Delete the offsets of deleted topics.

        A partition that is being loaded is skipped, as in Kafka (`CoordinatorRuntime.scheduleWriteAllOperation`). The
        offsets in this partition stay until another topic is deleted; in Kafka, until they expire.
        """
        if delta.deleted_topics or delta.everything:
            for offsets in tuple(self._led.values()):
                if offsets.is_loaded:
                    self._forget_deleted_topics(offsets, now)

    def _forget_deleted_topics(self, offsets: GroupOffsets, now: Now) -> None:
        self._append_tombstones(offsets, iter(tuple(offsets.keys_outside(self._image().topics))), now)

    def _append_tombstones(self, offsets: GroupOffsets, keys: Iterator[OffsetCommitKey], now: Now) -> None:
        """Append the next tombstones, and schedule the rest, until the leadership ends.

        If a topic was created again meanwhile, its offsets stay, because a consumer may have committed them since.
        """
        if self._led.get(offsets.partition.index) is not offsets:
            return
        next_keys = tuple(islice(keys, _TOMBSTONES_PER_EVENT))
        gone = [(key, None) for key in next_keys if key.topic not in self._image().topics]
        if gone:
            self._append(offsets, gone, lambda *_: None, now)
        if len(next_keys) == _TOMBSTONES_PER_EVENT:
            self._runtime.timers.set(now.monotonic_ms, lambda later: self._append_tombstones(offsets, keys, later))

    # Groups

    def partition_of(self, group: str) -> int:
        """Return the partition of a group in `__consumer_offsets`, whether that topic exists or not."""
        topic = self._image().topics.get(CONSUMER_OFFSETS_TOPIC)
        configured = self._runtime.configuration.integer("offsets.topic.num.partitions")
        return partition_for_group(group, configured if topic is None else len(topic.partitions))

    def find(self, group: str) -> GroupOffsets | ErrorCode:
        """Return the offsets of a group's partition, or an error if the partition is led elsewhere or not loaded."""
        offsets = self._led.get(self.partition_of(group))
        if offsets is None:
            return ErrorCode.not_coordinator
        return offsets if offsets.is_loaded else ErrorCode.coordinator_load_in_progress

    def commit(self, offsets: GroupOffsets, commits: Sequence[Commit], settled: Settled, now: Now) -> None:
        """Append commits. `settled` receives the error, or `none` when they are committed, possibly at once."""
        if commits:
            self._append(offsets, commits, settled, now)
        else:
            settled(ErrorCode.none, now)

    def await_stable(self, groups: Iterable[GroupOffsets], settled: Stable, now: Now) -> None:
        """Wait until the current records of these partitions are all committed, or until the timeout.

        `settled` then receives the error of each partition, possibly at once.

        :param groups: the partitions of `__consumer_offsets`.
        """
        required = {offsets.partition.key: offsets.partition.log.log_end_offset for offsets in groups}

        def on_committed(errors: Mapping[tuple[str, int], ErrorCode], later: Now) -> None:
            settled({index: _COORDINATOR_ERRORS.get(error, error) for (_, index), error in errors.items()}, later)

        waiting = DelayedProduce(required, self._replicas.find, on_committed)
        if not self._replicas.wait(waiting, self._timeout_ms, now):
            on_committed(waiting.errors, now)

    def _append(self, offsets: GroupOffsets, commits: Sequence[Commit], settled: Settled, now: Now) -> None:
        batch = encode_batch([KeyValue(*encode_offset_commit(*commit)) for commit in commits], now.wall_ms)

        def on_committed(error: ErrorCode, later: Now) -> None:
            settled(_COORDINATOR_ERRORS.get(error, error), later)

        try:
            appended = self._replicas.append(
                offsets.partition,
                batch,
                on_committed,
                timeout_ms=self._timeout_ms,
                now=now,
            )
        except AppendError as error:
            on_committed(error_code(error.error), now)
        else:
            offsets.appended(appended.last_offset + 1, commits)
