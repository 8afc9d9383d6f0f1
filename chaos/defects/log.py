"""Defects of the log: finding an offset or a time, cutting, rolling, letting old segments go, remembering epochs."""

from bisect import bisect_left, bisect_right

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.log import partition_log, retention
from reference_broker.core.log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, LeaderEpochs
from reference_broker.core.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.log.segment import Segment
from reference_broker.core.log.timestamp_and_offset import TimestampAndOffset
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.record_batch import Bytes

_seeds = Area.LOG.seeds
_below_log_start = retention.below_log_start
_read = Segment.read
_begin_again_at = PartitionLog.begin_again_at
_delete_records_before = PartitionLog.delete_records_before
_truncate_to = PartitionLog.truncate_to


@_seeds(OffsetIndex, "floor", "index-fits-log", "poll-skip", "lost-write", "log-matching")
def find_the_entry_above(self: OffsetIndex, offset: int) -> OffsetPosition | None:
    """The offset index gives the first entry above an offset, not the last one at or below it.

    Readers begin too far, and miss the records in between.
    """
    number = self._floor(offset - self._base_offset, field=0)
    return self._entry_at(min(number + 1, len(self) - 1))


@_seeds(PartitionLog, "_segment_number", "poll-skip", "lost-write")
def find_the_next_segment(self: PartitionLog, offset: int) -> int:
    """An offset in the middle of a segment is looked for in the next one.

    Readers jump to the next segment's start.
    """
    found: int = bisect_left(self._segments, offset, key=lambda segment: segment.base_offset)
    return min(found, len(self._segments) - 1)


@_seeds(Segment, "read", "read-above-watermark", "divergent-offset")
def read_one_batch_too_far(
    self: Segment, offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool
) -> bytes | None:
    """A read up to an offset gives the batch that begins there, too.

    Consumers see the first batch above the high watermark, which is not committed.
    """
    return _read(self, offset, max_bytes, end_offset + 1, whole_first_batch=whole_first_batch)


@_seeds(Segment, "truncate_to", "log-matching", "not-converged")
def keep_the_batch_at_the_truncation_offset(self: Segment, offset: int) -> None:
    """A log is cut behind the batch that holds the offset, not before it.

    A follower keeps the first record that its leader does not have.
    """
    position = self.position_of(offset)
    header = None if position is None else self._file.header_at(position)
    if position is None or header is None:
        return
    self._file.truncate(position + header.size_bytes)
    self._offset_index.truncate_to(offset + 1)
    self._time_index.truncate_to(offset + 1)
    self._largest, self._first_timestamp_ms = self._time_index.last, None
    self._is_largest_checked = True
    self._bytes_since_indexed = 0
    self.load_tail()


@_seeds(OffsetIndex, "truncate_to", "exception", "poll-skip", source="KAFKA-588")
def keep_index_entries_when_truncating(self: OffsetIndex, offset: int) -> None:
    """A log is cut, and its offset index is not.

    Entries lead to places at which other batches stand now.
    """


@_seeds(
    PartitionLog,
    "truncate_to",
    "committed-stays",
    "exception",
    "log-matching",
    "acknowledged-is-committed",
    "watermark-on-isr",
)
def cut_off_whole_segments_only(self: PartitionLog, offset: int, now_ms: int) -> None:
    """A truncation drops the segments from the one that holds the offset on, and keeps those before.

    A follower throws away more than it must, down to the segment's start: what all had is on fewer disks for a while,
    and gone if the leader ends in that moment.
    """
    below = [segment.base_offset for segment in self._segments if segment.base_offset <= offset]
    _truncate_to(self, below[-1] if below and offset < self.log_end_offset else offset, now_ms)


@_seeds(TimeIndex, "before", "offsets/by-timestamp-is-the-first-not-earlier")
def skip_equal_timestamps(self: TimeIndex, timestamp_ms: int) -> TimestampOffset | None:
    """A search by time begins behind the last entry that is not later, also if that is as late as what is looked for.

    Of records with equal timestamps the first ones are not found: a consumer that seeks by time misses them.
    """
    return self._entry_at(self._floor(timestamp_ms, field=0))


@_seeds(PartitionLog, "offset_for_timestamp", "offsets/by-timestamp-is-the-first-not-earlier")
def look_in_the_last_segment_for_a_time(self: PartitionLog, timestamp_ms: int) -> TimestampAndOffset | None:
    """A record is looked for by its time in the segment that is written to, and in no older one.

    A consumer that seeks by time begins too late.
    """
    return self._segments[-1].first_at_or_after(timestamp_ms, self.log_start_offset)


@_seeds(partition_log, "below_log_start", "lost-write", "watermark-within-log", "watermark-regress", "exception")
def drop_the_segment_that_holds_the_log_start(segments: list[Segment], log_start_offset: int) -> int:
    """When records are deleted, the segment goes in which the log starts now.

    Records above the log start go with it.
    """
    count = _below_log_start(segments, log_start_offset)
    return count + (count + 1 < len(segments) and segments[count].base_offset < log_start_offset)


@_seeds(retention, "_may_go", "watermark-within-log", "watermark-regress", "lost-write", source="KAFKA-5634")
def retain_by_size_alone(segment: Segment, high_watermark: int) -> bool:
    """Retention removes segments that reach above the high watermark.

    A slow follower finds that its leader does not have any more what it needs, and begins again.
    """
    return segment.size_bytes > 0


@_seeds(
    Partition,
    "replicate",
    "watermark-within-log",
    "watermark-regress",
    "offsets/delete-records-moves-log-start",
    source="KIP-107",
)
def keep_the_log_start_of_the_follower(
    self: Partition, records: Bytes, high_watermark: int, log_start_offset: int, now: Now
) -> None:
    """A follower does not take over the leader's log start.

    DeleteRecords waits for it in vain, and after a failover what was deleted is there again.
    """
    if records:
        self.log.append_as_follower(records, leader_epoch=self.leader_epoch, now_ms=now.wall_ms)
    moved = max(min(high_watermark, self.log.log_end_offset), self.log_start_offset)
    if moved != self.high_watermark:
        self.high_watermark = moved
        self._around.moved(self, now)


@_seeds(LeaderEpochs, "truncate_from_end", "log-matching", "epochs-fit-log", "not-converged", source="KAFKA-10706")
def keep_the_epoch_that_begins_at_the_end(self: LeaderEpochs, end_offset: int) -> None:
    """A truncation keeps the epoch that began exactly where the log now ends.

    The log says that it has an epoch of which nothing is left. Its next leader finds an end for it that nobody else
    has, and truncation never comes to rest.
    """
    keep = bisect_right(self._entries, end_offset, key=lambda entry: entry[1])
    if keep < len(self._entries):
        self._replace(self._entries[:keep])


@_seeds(
    LeaderEpochs,
    "end_offset_for",
    "ends-without-fault",
    "acknowledged-is-committed",
    "watermark-on-isr",
    "log-matching",
    "lost-write",
)
def answer_the_start_of_an_epoch(self: LeaderEpochs, epoch: int, log_end_offset: int) -> tuple[int, int]:
    """Asked where an older epoch ended, a log says where it began.

    Followers throw away that whole epoch, acknowledged records with it, and fetch it again; if the leader ends
    meanwhile it is lost.
    """
    if epoch == UNDEFINED_EPOCH or epoch > self.latest:
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET
    if epoch == self.latest:
        return epoch, log_end_offset
    following = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
    return self._entries[max(following - 1, 0)]


@_seeds(LeaderEpochs, "end_offset_for", "log-matching", "not-converged", source="KIP-279, KAFKA-6361")
def answer_for_epochs_that_never_were(self: LeaderEpochs, epoch: int, log_end_offset: int) -> tuple[int, int]:
    """Asked for an epoch that it does not have, a log answers with that epoch and the start of the next larger one.

    So it was before KIP-279. The follower believes that the leader has its epoch, and keeps records of it which nobody
    else has.
    """
    if epoch == UNDEFINED_EPOCH or epoch > self.latest:
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET
    if epoch == self.latest:
        return epoch, log_end_offset
    return epoch, self._entries[bisect_right(self._entries, epoch, key=lambda entry: entry[0])][1]


@_seeds(LeaderEpochs, "assign", "epochs-fit-log", "log-matching")
def note_an_epoch_one_record_late(self: LeaderEpochs, epoch: int, start_offset: int) -> None:
    """An epoch is written down as beginning one offset after its first record.

    Replicas that look for the place where their logs part keep one record of the older epoch too many.
    """
    if epoch > self.latest:
        late = start_offset + bool(self._entries)
        self._replace([entry for entry in self._entries if entry[1] < late] + [(epoch, late)])


@_seeds(PartitionLog, "begin_again_at", "epochs-fit-log", "log-matching", "exception")
def keep_epochs_when_beginning_again(self: PartitionLog, offset: int, now_ms: int) -> None:
    """A replica that drops its log, as the leader's begins above it, keeps its leader epochs.

    It goes on to speak of epochs whose records it has thrown away.
    """
    entries = list(self.epochs.entries)
    _begin_again_at(self, offset, now_ms)
    self.epochs.restore(entries)


@_seeds(PartitionLog, "delete_records_before", "watermark-within-log", "watermark-regress", "poll-skip", "lost-write")
def delete_one_record_too_many(self: PartitionLog, offset: int) -> None:
    """The log start is put behind the first record that was to stay.

    DeleteRecords takes one record more than it was asked for.
    """
    _delete_records_before(self, min(offset + 1, self.log_end_offset) if offset > self.log_start_offset else offset)
