"""Log of a partition: recovery, offset lookup, append, read, retention and truncation.

Follows: org.apache.kafka.storage.internals.log.UnifiedLog.

Rules of this file:
- `append` validates a client's batch and assigns its offset; `append_as_follower` appends a leader's batches byte for
  byte. Both call `append_placed`, and the quorum calls it directly. A batch is placed if it has its final offset and
  leader epoch.
- Offsets increase, and an appended batch never changes. Records below `log_start_offset` cannot be read.
- Records below `recovery_point` survive a crash. When the log is opened after a crash, later batches are verified, and
  the log is truncated before the first incomplete or corrupt batch (`loading`).
- Segments, indexes, epochs and producer state are consistent after every call: a rejected batch changes none of them.
- Clock and disk are arguments. An `OSError` of the disk is not handled here: the log directory has failed.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from typing import NamedTuple, Self

from reference_broker.core.disk import Disk
from reference_broker.core.log.append_validation import ValidatedBatch, decompressed_max_bytes, validate
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import AppendError, OffsetOutOfRangeError
from reference_broker.core.log.leader_epoch_file_cache import LeaderEpochFileCache
from reference_broker.core.log.loading import SegmentLoader
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.placed_batches import placed_batches
from reference_broker.core.log.producer_state_manager import AppendedBatch, ProducerStateManager
from reference_broker.core.log.retention import below_log_start, over_age, over_size
from reference_broker.core.log.snapshots import ProducerSnapshots
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    Bytes,
    TimestampType,
    decompress,
    iterate_records,
    with_timestamp,
)
from reference_broker.protocol.steps import RECORDS_PER_STEP, Steps, finish


class Appended(NamedTuple):
    """Offsets of an appended batch, or of the earlier one if it is a duplicate (`LogAppendInfo`)."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 with CreateTime. For a duplicate it is, as in Kafka, the largest timestamp of the earlier batch."""
    log_start_offset: int


class TimestampAndOffset(NamedTuple):
    """A record's timestamp, its offset, and the leader epoch of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class UnifiedLog:
    """A log, opened by `open` and closed by `close`."""

    def __init__(self, disk: Disk, directory: str, config: LogConfig) -> None:
        self.config = config
        self.producers = ProducerStateManager()
        self.epochs = LeaderEpochFileCache(disk, directory)
        self.log_start_offset = 0
        self.recovery_point = 0
        self._disk = disk
        self.directory = directory
        self._snapshots = ProducerSnapshots(disk, directory)
        self._segments: list[LogSegment] = []
        self._are_names_durable = False

    # Opening and closing

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now_ms: int,
        *,
        clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
    ) -> Self:
        """Open a log, or create an empty one.

        :param clean: whether the last run closed it, so that no segment is recovered.
        :param recovery_point: after a crash, the segments that end above it and the active segment are recovered.
        :param log_start_offset: the checkpointed log start offset.
        :raises OSError: the disk fails.
        """
        disk.make_directory(directory)
        log = cls(disk, directory, config)
        log._load(now_ms, clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset)
        return log

    def _load(self, now_ms: int, *, clean: bool, recovery_point: int, log_start_offset: int) -> None:
        loader = self._loader(now_ms)
        recovered: list[tuple[int, int]] = []

        def observe(header: BatchHeader) -> None:
            if not recovered or header.leader_epoch > recovered[-1][0]:
                recovered.append((header.leader_epoch, header.base_offset))

        self._segments = loader.load(
            clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset, observe=observe
        )
        self.log_start_offset = max(log_start_offset, self._segments[0].base_offset)
        self.recovery_point = self.log_end_offset if clean else min(recovery_point, self.log_end_offset)
        self._restore_epochs(recovered)
        if not clean:
            self._recover_producer_state(recovery_point, now_ms)
        self._rebuild_producer_state(now_ms)

    def _loader(self, now_ms: int) -> SegmentLoader:
        return SegmentLoader(self._disk, self.directory, self.config.index_interval_bytes, now_ms)

    def _restore_epochs(self, recovered: list[tuple[int, int]]) -> None:
        """Restore the epochs: from the checkpoint up to the first recovered batch, then from the recovered batches.

        If the epoch checkpoint does not cover the log start offset, the headers of all batches are read instead. This
        happens if the checkpoint is missing, or if a crash restored an earlier log start offset.
        """
        known_to = recovered[0][1] if recovered else self.log_end_offset
        known = [entry for entry in self.epochs.entries if entry[1] < known_to]
        if not known or known[0][1] > self.log_start_offset:
            headers = takewhile(lambda header: header.base_offset < known_to, self._headers(self.log_start_offset))
            known = [(header.leader_epoch, header.base_offset) for header in headers]
        self.epochs.restore([*known, *recovered])
        self.epochs.truncate_from_start(self.log_start_offset)

    def _recover_producer_state(self, recovery_point: int, now_ms: int) -> None:
        """Take the snapshots of `LogLoader.recoverSegment`: one at the end of each recovered segment.

        Existing snapshots above the base offset of the first recovered segment are deleted first, because the batches
        that they cover may be lost. `_load` then restores the producer state from the new snapshot at the log end. This
        snapshot has only the last batch of each producer, so after a crash only a duplicate of this batch is detected.
        """
        self._snapshots.delete_above(self._segments[self._segment_number(recovery_point)].base_offset)
        self._rebuild_producer_state(now_ms)

    def _rebuild_producer_state(self, now_ms: int) -> None:
        """Load the latest snapshot and the later batches, and take new snapshots (`rebuildProducerState`)."""
        self.producers.clear()
        from_offset = self._snapshots.restore(self.producers, self.log_start_offset, self.log_end_offset)
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
        taken: list[str] = []
        for segment in self._segments[self._segment_number(from_offset) :]:
            if segment.base_offset > from_offset:
                taken += self._take_snapshot(segment.base_offset)
            for header in segment.headers(max(from_offset, segment.base_offset)):
                if header.producer_id != NO_PRODUCER_ID:
                    self.producers.update(header)
        taken += self._take_snapshot(self.log_end_offset)
        if taken:
            self._disk.flush(*taken)

    def _take_snapshot(self, offset: int) -> list[str]:
        return self._snapshots.take(self.producers, offset, self.log_start_offset)

    def _headers(self, from_offset: int) -> Iterator[BatchHeader]:
        for segment in self._segments[self._segment_number(from_offset) :]:
            yield from segment.headers(max(from_offset, segment.base_offset))

    def close(self) -> None:
        """Flush everything and take a producer snapshot: a clean shutdown."""
        close_logs(self._disk, [self])

    def finish(self) -> list[str]:
        """Complete the active segment: write the last entry of its time index, and a producer snapshot.

        Return the paths of all files that the caller must flush.
        """
        self._segments[-1].close()
        snapshot = self._take_snapshot(self.log_end_offset)
        return [*self._take_unflushed(with_active_indexes=True), *snapshot]

    # State

    @property
    def segments(self) -> Sequence[LogSegment]:
        """The segments, oldest first; the last one is the active segment."""
        return self._segments

    @property
    def disk(self) -> Disk:
        """The disk that holds the files of the log."""
        return self._disk

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
        return self._segments[-1].end_offset

    @property
    def gapless_from_offset(self) -> int:
        """The offset from which no segments are missing. Below it, a power cut may have restored deleted segments."""
        parts = [later.base_offset for one, later in pairwise(self._segments) if one.end_offset != later.base_offset]
        return max(parts, default=self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Size of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of the last record, or a later epoch without records yet; -1 if there is none."""
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest known epoch not above this one, and its end offset (`LeaderEpochFileCache`)."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> Steps[TimestampAndOffset | None]:
        """Return the first record with this timestamp or a later one (`fetchOffsetByTimestamp`, KIP-79).

        The log may change between two steps, so the segments are searched again for each batch.
        """
        from_offset = self.log_start_offset
        while (batch := self._batch_at_or_after(timestamp_ms, from_offset)) is not None:
            header, records = batch
            found = yield from self._first_record(header, records, timestamp_ms, from_offset)
            if found is not None:
                return found
            from_offset = header.last_offset + 1
            yield
        return None

    def _batch_at_or_after(self, timestamp_ms: int, from_offset: int) -> tuple[BatchHeader, bytes] | None:
        """Return header and records of the first batch from an offset on with this max timestamp or a later one."""
        for segment in self._segments:
            if segment.max_timestamp_ms >= timestamp_ms and segment.end_offset > from_offset:
                found = segment.batch_at_or_after(timestamp_ms, from_offset)
                if found is not None:
                    return found
        return None

    def _first_record(
        self, header: BatchHeader, records: bytes, timestamp_ms: int, from_offset: int
    ) -> Steps[TimestampAndOffset | None]:
        """Decompress a batch, and return its first record that matches; null if none does or the batch is corrupt."""
        with suppress(BatchError):
            data = yield from decompress(header, records, decompressed_max_bytes(self.config))
            for index, record in enumerate(iterate_records(header, data), 1):
                offset = header.base_offset + record.offset_delta
                if record.timestamp_ms >= timestamp_ms and offset >= from_offset:
                    return TimestampAndOffset(record.timestamp_ms, offset, header.leader_epoch)
                if index % RECORDS_PER_STEP == 0:
                    yield
        return None

    def max_timestamp(self) -> Steps[TimestampAndOffset | None]:
        """Return the first record with the largest timestamp (KIP-734)."""
        latest_ms = max(segment.max_timestamp_ms for segment in self._segments)
        return None if latest_ms == NO_TIMESTAMP else (yield from self.offset_for_timestamp(latest_ms))

    # Appending

    def append(self, batch: Bytes, *, leader_epoch: int, now_ms: int) -> Appended:
        """Validate and append a client's batch in one step (`appendAsLeader`).

        :raises AppendError: the batch is rejected; the log is unchanged.
        """
        validated = finish(validate(batch, self.config, now_ms))
        return self.append_validated(validated, leader_epoch=leader_epoch, now_ms=now_ms)

    def append_validated(self, batch: ValidatedBatch, *, leader_epoch: int, now_ms: int) -> Appended:
        """Append a client's batch that `validate` has accepted.

        :raises AppendError: the producer state rejects the batch; the log is unchanged.
        """
        header = batch.header
        if header.producer_id != NO_PRODUCER_ID:
            duplicate = self._check_producer(header)
            if duplicate is not None:
                earlier = duplicate.base_offset, duplicate.last_offset, duplicate.timestamp_ms
                return Appended(*earlier, self.log_start_offset)
        records = memoryview(batch.data)[HEADER_SIZE_BYTES : header.size_bytes]
        placed = self._place(header, records, leader_epoch, now_ms)
        self.append_placed(placed, batch.data, now_ms)
        append_time_ms = now_ms if self.config.uses_log_append_time else NO_TIMESTAMP
        return Appended(placed.base_offset, placed.last_offset, append_time_ms, self.log_start_offset)

    def append_as_follower(self, records: Bytes, *, leader_epoch: int, now_ms: int) -> None:
        """Append a leader's batches; an incomplete last batch is left for the next fetch.

        :param leader_epoch: the leader epoch of the fetch request.
        :raises AppendError: a batch is corrupt, or does not follow the previous one; the log is unchanged.
        """
        batches = placed_batches(
            records,
            log_end_offset=self.log_end_offset,
            is_empty=self.log_start_offset == self.log_end_offset,
            latest_epoch=self.latest_epoch,
            leader_epoch=leader_epoch,
        )
        for header, batch in tuple(batches):
            if header.base_offset < self.log_end_offset:
                self.truncate_fully_and_start_at(header.base_offset, now_ms)
            self.append_placed(header, batch, now_ms)

    def append_placed(self, header: BatchHeader, batch: Bytes, now_ms: int) -> None:
        """Append a batch. Its offset and leader epoch must follow those of the log.

        :param header: replaces the header in `batch`.
        """
        self._roll_if_due(header, now_ms)
        self.epochs.assign(header.leader_epoch, header.base_offset)
        self._segments[-1].append(header, memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes])
        if header.producer_id != NO_PRODUCER_ID:
            self.producers.update(header)
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()

    def assign_epoch_start_offset(self, leader_epoch: int) -> None:
        """Start a leader epoch at the log end offset (KIP-101)."""
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def _check_producer(self, header: BatchHeader) -> AppendedBatch | None:
        duplicate = self.producers.find_duplicate_batch(header)
        if duplicate is None:
            self.producers.check_producer_epoch(header)
            if header.is_transactional:
                raise AppendError("INVALID_TXN_STATE", "Record was not part of an ongoing transaction")
            self.producers.check_sequence(header)
        return duplicate

    def _place(self, header: BatchHeader, records: memoryview, leader_epoch: int, now_ms: int) -> BatchHeader:
        """Return the header with its final offset, epoch and timestamp. Only the timestamp changes the checksum."""
        placed = header._replace(base_offset=self.log_end_offset, leader_epoch=leader_epoch)
        if self.config.uses_log_append_time:
            return with_timestamp(placed, records, TimestampType.LOG_APPEND_TIME, now_ms)
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return with_timestamp(placed, records, TimestampType.CREATE_TIME, header.max_timestamp_ms)
        return placed

    def _roll_if_due(self, header: BatchHeader, now_ms: int) -> None:
        active = self._segments[-1]
        if active.size_bytes and (
            active.is_full(header, self.config.segment_bytes, self.config.segment_index_bytes)
            or active.time_waited_for_roll_ms(now_ms, header.max_timestamp_ms) > self.config.segment_ms
        ):
            self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        """Close and flush the active segment, and create the next one at the log end."""
        close_logs(self._disk, [self])
        self._segments.append(self._loader(now_ms).create(self.log_end_offset))
        self._are_names_durable = False

    def flush(self) -> None:
        """Make every batch durable."""
        paths = self._take_unflushed(with_active_indexes=False)
        if paths:
            self._disk.flush(*paths)
        if not self._are_names_durable:
            self._disk.flush_directory(self.directory)
            self._are_names_durable = True

    def _take_unflushed(self, *, with_active_indexes: bool) -> list[str]:
        """Advance the recovery point to the log end, and return the files that the caller must flush at once."""
        *closed, active = self._segments[self._segment_number(self.recovery_point) :]
        paths = [path for segment in closed for path in segment.take_unflushed(with_indexes=True)]
        self.recovery_point = self.log_end_offset
        active_paths = active.take_unflushed(with_indexes=with_active_indexes)
        epochs_paths = self.epochs.take_unflushed()
        self._are_names_durable = self._are_names_durable and not epochs_paths  # the checkpoint is a new file
        return [*paths, *active_paths, *epochs_paths]

    # Reading

    def read(self, offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool = True) -> bytes:
        """Return whole batches of one segment below `end_offset`, beginning with the one that contains `offset`.

        :param max_bytes: maximum size of the returned batches.
        :param whole_first_batch: return the first batch even if it is larger, so that readers make progress (KIP-74).
        :raises OffsetOutOfRangeError: `offset` is below the log start or above the log end.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(f"{offset} is not in [{self.log_start_offset}, {self.log_end_offset}]")
        if offset >= end_offset:
            return b""
        for segment in self._segments[self._segment_number(offset) :]:
            start = max(offset, segment.base_offset)
            batches = segment.read(start, max_bytes, end_offset, whole_first_batch=whole_first_batch)
            if batches is not None:
                return batches
        return b""

    def _segment_number(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    # Truncation and deletion

    def maybe_increment_log_start_offset(self, offset: int) -> None:
        """Advance the log start offset (KIP-107); `delete_below_start` deletes the segments below it.

        :raises OffsetOutOfRangeError: the offset is above the log end.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(f"{offset} is above the end {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def remove_expired_producers(self, now_ms: int) -> None:
        """Remove producers whose last batch is at least `producer.id.expiration.ms` old."""
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def apply_retention(self, now_ms: int, high_watermark: int) -> bool:
        """Advance the log start offset past the segments to delete by retention time or size (`retention`).

        :returns: whether `delete_below_start` can delete segments below the log start offset. The log start offset
            must be durable before these segments are deleted. Otherwise a power cut might restore the old log start
            offset with only some of the files, and the log would have gaps.
        """
        first = below_log_start(self._segments, self.log_start_offset)
        if self.config.deletes:
            first += over_size(self._segments[first:], self.config, high_watermark)
            first += over_age(self._segments[first:], self.config, high_watermark, now_ms)
            if first == len(self._segments):
                self.roll(now_ms)
            self.maybe_increment_log_start_offset(self._segments[first].base_offset)
        return first > 0

    def delete_below_start(self) -> None:
        """Delete the segments below the log start (`deleteOldSegments`)."""
        count = below_log_start(self._segments, self.log_start_offset)
        for segment in self._segments[:count]:
            segment.delete()
        del self._segments[:count]
        self._snapshots.delete_below(self._segments[0].base_offset)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove the batch that contains `offset` and all later ones, because the log diverges from the leader's.

        The removal of records is durable on return. Otherwise a power cut might restore them, but not their epochs.
        Epochs that start at the log end are removed even if no record is removed, because they have no records and
        exist only on this replica.
        """
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        while self._segments and self._segments[-1].base_offset >= offset:
            self._segments.pop().delete()
        if self._segments:
            self._segments[-1].truncate_to(offset)
        else:
            self._segments = [self._loader(now_ms).create(offset)]
        self._disk.flush(self._segments[-1].log_path)
        self._disk.flush_directory(self.directory)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self._rebuild_producer_state(now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Remove all records; the next one has this offset.

        Used by a follower whose log ends before the leader's log start offset, and by the quorum for a snapshot.
        """
        self.epochs.truncate_from_end(0)
        self._snapshots.delete_above(-1)
        self.producers.clear()
        while self._segments:
            self._segments.pop().delete()
        self._segments = [self._loader(now_ms).create(offset)]
        self._disk.flush(*self.epochs.take_unflushed())
        self._disk.flush_directory(self.directory)
        self.log_start_offset = self.recovery_point = offset


def close_logs(disk: Disk, logs: Iterable[UnifiedLog]) -> None:
    """Close logs. All are flushed together, so that closing thousands of logs costs little more than closing one."""
    logs = tuple(logs)
    disk.flush(*[path for log in logs for path in log.finish()])
    disk.flush_directory(*[log.directory for log in logs])
