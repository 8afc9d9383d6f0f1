"""Defects of the log: lookup of offsets and timestamps, truncation, deletion of records, leader epochs."""

from bisect import bisect_left, bisect_right

from chaos.defects.defect import Area
from reference_broker.core.log.index import OffsetIndex, OffsetPosition
from reference_broker.core.log.leader_epoch_file_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET, LeaderEpochFileCache
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import BatchHeader

_seeds = Area.LOG.seeds
_read = LogSegment.read
_truncate_fully_and_start_at = UnifiedLog.truncate_fully_and_start_at
_maybe_increment_log_start_offset = UnifiedLog.maybe_increment_log_start_offset
_truncate_to = UnifiedLog.truncate_to


@_seeds(OffsetIndex, "floor", "index-fits-log", "poll-skip", "lost-write", "log-matching")
def find_the_entry_above(self: OffsetIndex, offset: int) -> OffsetPosition | None:
    """The offset index gives the first entry above an offset, not the last one at or below it.

    Readers begin too late, and skip the records in between.
    """
    number = self._floor(offset - self._base_offset, field=0)
    return self.entry(min(number + 1, len(self) - 1))


@_seeds(UnifiedLog, "_segment_number", "poll-skip", "lost-write")
def find_the_next_segment(self: UnifiedLog, offset: int) -> int:
    """An offset in the middle of a segment is looked up in the next one.

    Readers skip to the start of the next segment.
    """
    found: int = bisect_left(self._segments, offset, key=lambda segment: segment.base_offset)
    return min(found, len(self._segments) - 1)


@_seeds(LogSegment, "read", "read-above-watermark", "divergent-offset")
def read_one_batch_too_far(
    self: LogSegment, offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool
) -> bytes | None:
    """A read up to an offset returns the batch that begins there, too.

    Consumers read the first batch above the high watermark, which is not committed.
    """
    return _read(self, offset, max_bytes, end_offset + 1, whole_first_batch=whole_first_batch)


@_seeds(
    UnifiedLog,
    "truncate_to",
    "committed-stays",
    "exception",
    "log-matching",
    "acknowledged-is-committed",
    "watermark-on-isr",
)
def cut_off_whole_segments_only(self: UnifiedLog, offset: int, now_ms: int) -> None:
    """A truncation deletes the whole segment with the offset and all later ones.

    A follower deletes more than necessary, down to the start of the segment: committed records are on fewer disks for
    some time, and lost if the leader fails meanwhile.
    """
    below = [segment.base_offset for segment in self._segments if segment.base_offset <= offset]
    _truncate_to(self, below[-1] if below and offset < self.log_end_offset else offset, now_ms)


@_seeds(
    LeaderEpochFileCache,
    "end_offset_for",
    "quorum-consistent",
    "ends-without-fault",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "log-matching",
    "lost-write",
    "quorum-response",
)
def return_the_start_of_an_epoch(self: LeaderEpochFileCache, epoch: int, log_end_offset: int) -> tuple[int, int]:
    """The start offset of an older epoch is returned as its end offset.

    Followers truncate the whole epoch with its acknowledged records, and fetch it again. If the leader fails meanwhile,
    the records are lost.
    """
    if epoch == UNDEFINED_EPOCH or epoch > self.latest:
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET
    if epoch == self.latest:
        return epoch, log_end_offset
    following = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
    return self._entries[max(following - 1, 0)]


@_seeds(LeaderEpochFileCache, "assign", "epochs-fit-log", "log-matching")
def note_an_epoch_one_record_late(self: LeaderEpochFileCache, epoch: int, start_offset: int) -> None:
    """Every epoch after the first one is stored with a start one offset after its first record.

    Replicas whose logs diverge keep one record of the older epoch too many.
    """
    if epoch > self.latest:
        late = start_offset + bool(self._entries)
        self._replace([entry for entry in self._entries if entry[1] < late] + [(epoch, late)])


@_seeds(UnifiedLog, "truncate_fully_and_start_at", "epochs-fit-log", "log-matching", "exception")
def keep_epochs_when_beginning_again(self: UnifiedLog, offset: int, now_ms: int) -> None:
    """A replica that truncates its log fully, because the leader's log starts above its end, keeps its leader epochs.

    It continues to report epochs whose records it has deleted.
    """
    entries = list(self.epochs.entries)
    _truncate_fully_and_start_at(self, offset, now_ms)
    self.epochs.restore(entries)


@_seeds(
    UnifiedLog,
    "maybe_increment_log_start_offset",
    "watermark-within-log",
    "watermark-regress",
    "poll-skip",
    "lost-write",
)
def delete_one_record_too_many(self: UnifiedLog, offset: int) -> None:
    """The log start offset is set after the first record that should be kept.

    DeleteRecords deletes one record more than requested.
    """
    _maybe_increment_log_start_offset(
        self, min(offset + 1, self.log_end_offset) if offset > self.log_start_offset else offset
    )


@_seeds(UnifiedLog, "_batch_at_or_after", "time-index-fits-log", "offsets/by-timestamp-is-the-first-not-earlier")
def look_in_the_last_segment_for_a_time(
    self: UnifiedLog, timestamp_ms: int, from_offset: int
) -> tuple[BatchHeader, bytes] | None:
    """A timestamp is looked up only in the active segment.

    A consumer that seeks by timestamp begins too late.
    """
    return self._segments[-1].batch_at_or_after(timestamp_ms, from_offset)
