"""The log of one partition: append, read, look up, truncate, retain, recover.

Rules of this file:
- Offsets are given at the append and rise; a batch is never changed afterwards. `log_start_offset` and
  `log_end_offset` bound what can be read.
- Nothing below `recovery_point` is lost by a crash. On opening after one, batches from there on are held against their
  checksums and the log ends before the first that is torn.
- Segments, indexes, epochs and producer state agree at every return: a refused batch changes none of them.
- The clock and the disk are arguments. An `OSError` of the disk passes through: the directory is lost.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Self

from reference_broker.core.disk import Disk
from reference_broker.core.log.append_validation import validate
from reference_broker.core.log.config import UNLIMITED, LogConfig
from reference_broker.core.log.epochs import LeaderEpochs
from reference_broker.core.log.errors import OffsetOutOfRangeError
from reference_broker.core.log.producers import AppendedBatch, Producers
from reference_broker.core.log.segment import Segment, TimestampAndOffset
from reference_broker.protocol.record_batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    place,
    stamp_log_append_time,
)

_SNAPSHOT_SUFFIX = ".snapshot"


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch stands in the log; for a duplicate, where it stood already."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 under CreateTime."""
    log_start_offset: int
    duplicate: bool = False


class PartitionLog:
    """Made by `open`; let go of by `close`."""

    def __init__(self, disk: Disk, directory: str, config: LogConfig, segments: list[Segment], log_start: int) -> None:
        self.config = config
        self.producers = Producers()
        self.epochs = LeaderEpochs(disk, directory)
        self.log_start_offset = log_start
        self.recovery_point = segments[-1].end_offset
        self._disk = disk
        self._directory = directory
        self._segments = segments
        self._active_created_ms = 0

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
        """Open a log, or make an empty one.

        :param clean: the last run closed it; segments are then trusted and only their tails are looked at.
        :param recovery_point: after a crash, segments that end below it are trusted.
        :param log_start_offset: from the checkpoint of log starts.
        :raises OSError: the disk fails.
        """
        disk.make_directory(directory)
        names = disk.list(directory)
        bases = sorted(int(name[:20]) for name in names if name.endswith(".log") and name[:20].isdigit())
        segments = [Segment(disk, directory, base, config.index_interval_bytes) for base in bases]
        if not segments:
            segments = [Segment(disk, directory, log_start_offset, config.index_interval_bytes)]
            disk.flush_directory(directory)
        kept = _load(segments, clean=clean, recovery_point=recovery_point)
        for orphan in segments[len(kept) :]:
            orphan.delete()
        log = cls(disk, directory, config, kept, max(log_start_offset, kept[0].base_offset))
        log._active_created_ms = now_ms
        log._restore_state(clean)
        return log

    def _restore_state(self, clean: bool) -> None:
        """Producers and epochs, from their files as far as these can be trusted and from the batches beyond."""
        self.epochs.truncate_from_end(self.log_end_offset)
        if not clean:
            self.epochs.rebuild(self._epochs_in_batches())
        self.epochs.truncate_from_start(self.log_start_offset)
        snapshot_offset = self._load_latest_snapshot()
        for segment in self._segments:
            if segment.end_offset > snapshot_offset:
                for _, header in segment.headers():
                    if header.base_offset >= snapshot_offset and header.producer_id != NO_PRODUCER_ID:
                        self.producers.note(header, header.base_offset, header.max_timestamp_ms)

    def _epochs_in_batches(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for segment in self._segments:
            for _, header in segment.headers():
                if not found or header.leader_epoch > found[-1][0]:
                    found.append((header.leader_epoch, header.base_offset))
        return found

    def _load_latest_snapshot(self) -> int:
        """Offset up to which the producers are known; damaged snapshots, and those beyond the end, are removed."""
        for offset in sorted(self._snapshot_offsets(), reverse=True):
            path = self._snapshot_path(offset)
            if offset <= self.log_end_offset and self.producers.load(self._disk, path):
                return offset
            self._disk.delete(path)
        return 0

    def close(self, *, clean: bool) -> None:
        """Make everything durable, with a snapshot of the producers, unless the log is to be deleted anyway."""
        if clean:
            self.producers.save(self._disk, self._snapshot_path(self.log_end_offset))
            self._segments[-1].seal()
            self.recovery_point = self.log_end_offset

    # What it holds

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
        return self._segments[-1].end_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of the last record; -1 where there is none."""
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """See `LeaderEpochs.end_offset_for`."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """The first record that is not older."""
        for segment in self._segments:
            if segment.max_timestamp_ms >= timestamp_ms:
                found = segment.first_at_or_after(timestamp_ms, self.log_start_offset)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp of all."""
        latest = max(self._segments, key=lambda segment: segment.max_timestamp_ms)
        return latest.max_timestamp()

    # Appending

    def append(self, records: bytes | memoryview, *, leader_epoch: int, now_ms: int) -> Appended:
        """Take one batch of a client.

        :raises AppendError: it breaks a rule; the log is as it was.
        """
        header = validate(records, self.config, now_ms)
        idempotent = header.producer_id != NO_PRODUCER_ID
        if idempotent:
            duplicate = self.producers.duplicate_of(header)
            if duplicate is not None:
                return self._appended(duplicate, NO_TIMESTAMP, duplicate=True)
            self.producers.check(header)
        base_offset = self.log_end_offset
        batch = place(bytes(records[: header.size_bytes]), base_offset, leader_epoch)
        if self.config.uses_log_append_time:
            stamp_log_append_time(batch, now_ms)
        placed = BatchHeader.parse(batch)
        self._roll_if_due(placed, now_ms)
        self.epochs.assign(leader_epoch, base_offset)
        self._segments[-1].append(batch, placed)
        if idempotent:
            self.producers.note(placed, base_offset, placed.max_timestamp_ms)
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        stamp = now_ms if self.config.uses_log_append_time else NO_TIMESTAMP
        return self._appended(_as_appended(placed), stamp)

    def _appended(self, batch: AppendedBatch, log_append_time_ms: int, *, duplicate: bool = False) -> Appended:
        return Appended(batch.base_offset, batch.last_offset, log_append_time_ms, self.log_start_offset, duplicate)

    def _roll_if_due(self, header: BatchHeader, now_ms: int) -> None:
        active = self._segments[-1]
        fits = active.has_room(header, header.last_offset, self.config.segment_bytes, self.config.segment_index_bytes)
        if not fits or self._is_over_age(header.max_timestamp_ms, now_ms):
            self.roll(now_ms)

    def _is_over_age(self, timestamp_ms: int, now_ms: int) -> bool:
        """`segment.ms`, measured in the records' own time where they have one, as Kafka does."""
        active = self._segments[-1]
        if not active.size_bytes:
            return False
        if active.first_timestamp_ms is not None and active.first_timestamp_ms != NO_TIMESTAMP:
            return timestamp_ms - active.first_timestamp_ms > self.config.segment_ms
        return now_ms - self._active_created_ms > self.config.segment_ms

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin another at the end."""
        self._segments[-1].seal()
        self.producers.save(self._disk, self._snapshot_path(self.log_end_offset))
        self.recovery_point = self.log_end_offset
        self._segments.append(
            Segment(self._disk, self._directory, self.log_end_offset, self.config.index_interval_bytes)
        )
        self._disk.flush_directory(self._directory)
        self._active_created_ms = now_ms

    def flush(self) -> None:
        """Make every batch durable."""
        self._segments[-1].flush()
        self.recovery_point = self.log_end_offset

    # Reading

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that holds `offset` and below `end_offset`, of one segment.

        At most `max_bytes`, but always one batch (KIP-74); empty at the end.

        :raises OffsetOutOfRangeError: below the log's start or above its end.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(f"{offset} is not in [{self.log_start_offset}, {self.log_end_offset}]")
        if offset >= end_offset:
            return b""
        for segment in self._segments[self._segment_number(offset) :]:
            if offset < segment.end_offset:
                return segment.read(max(offset, segment.base_offset), max_bytes, end_offset)
        return b""

    def _segment_number(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    # Getting shorter

    def delete_records_before(self, offset: int) -> None:
        """Move the log start up (KIP-107); whole segments below it go at the next `apply_retention`."""
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(f"{offset} is above the end {self.log_end_offset}")
        self.log_start_offset = max(self.log_start_offset, offset)
        self.epochs.truncate_from_start(self.log_start_offset)

    def apply_retention(self, now_ms: int, high_watermark: int) -> int:
        """Remove whole segments that time, size or the log start let go, and producers that have expired.

        Nothing at or above the high watermark goes. An active segment whose records are all too old is rolled first.

        :returns: how many segments were removed.
        """
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
        if self.config.deletes and self._segments[-1].size_bytes and self._has_expired(self._segments[-1], now_ms):
            self.roll(now_ms)
        removed = 0
        while len(self._segments) > 1 and self._may_go(self._segments[0], now_ms, high_watermark):
            self._segments.pop(0).delete()
            removed += 1
        if removed:
            self.delete_records_before(max(self._segments[0].base_offset, self.log_start_offset))
            self._delete_snapshots_below(self._segments[0].base_offset)
        return removed

    def _may_go(self, segment: Segment, now_ms: int, high_watermark: int) -> bool:
        if segment.end_offset > high_watermark:
            return False
        if segment.end_offset <= self.log_start_offset:
            return True
        too_large = self.config.retention_bytes != UNLIMITED and (
            self.size_bytes - segment.size_bytes >= self.config.retention_bytes
        )
        return self.config.deletes and (too_large or self._has_expired(segment, now_ms))

    def _has_expired(self, segment: Segment, now_ms: int) -> bool:
        return (
            self.config.retention_ms != UNLIMITED
            and segment.max_timestamp_ms != NO_TIMESTAMP
            and now_ms - segment.max_timestamp_ms > self.config.retention_ms
        )

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop everything from `offset` on, as a follower does whose log has parted from the leader's."""
        if offset >= self.log_end_offset:
            return
        while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
            self._segments.pop().delete()
        self._segments[-1].truncate_to(offset)
        self._active_created_ms = now_ms
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.producers.clear()
        self._restore_state(clean=True)

    def configure(self, **changes: int | str | frozenset[str]) -> None:
        """Take over changed topic properties."""
        self.config = replace(self.config, **changes)  # type: ignore[arg-type]

    # Snapshots of the producers

    def _snapshot_path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{_SNAPSHOT_SUFFIX}"

    def _snapshot_offsets(self) -> list[int]:
        names = self._disk.list(self._directory)
        return [int(name[:20]) for name in names if name.endswith(_SNAPSHOT_SUFFIX) and name[:20].isdigit()]

    def _delete_snapshots_below(self, offset: int) -> None:
        for snapshot_offset in self._snapshot_offsets():
            if snapshot_offset < offset:
                self._disk.delete(self._snapshot_path(snapshot_offset))


def _load(segments: list[Segment], *, clean: bool, recovery_point: int) -> list[Segment]:
    """The segments that stand: after a torn one none does."""
    kept: list[Segment] = []
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else None
        kept.append(segment)
        if clean or (next_base is not None and next_base <= recovery_point):
            segment.load()
        elif segment.recover():
            break
    return kept


def _as_appended(header: BatchHeader) -> AppendedBatch:
    return AppendedBatch(
        header.base_sequence, header.last_sequence, header.base_offset, header.last_offset, header.max_timestamp_ms
    )
