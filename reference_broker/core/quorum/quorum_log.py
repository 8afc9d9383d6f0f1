"""The log of the quorum: records in segments, snapshots before them, and the divergence of two logs.

Follows: org.apache.kafka.raft.internals.KafkaRaftLog (KIP-595, KIP-630).

Rules of this file:
- The log begins at 0, or at the end of its oldest snapshot. A log that does not contain its newest snapshot's last
  record is of no use, and begins again, empty, at that snapshot's end: that is how a fetched snapshot replaces a log,
  and how a crash in the middle of it is mended. Segments that were to go and are there again end where the newest
  snapshot has all that they had: the log begins behind the gap.
- `end` is the offset of the next record and the epoch of the last one; epoch 0 in a log that never had one.
- Nothing is promised to anybody before it is flushed.
"""

from reference_broker.core.disk import Disk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.leader_epoch_file_cache import UNDEFINED_EPOCH
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.core.quorum.snapshots import Snapshots
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, MAGIC, BatchHeader, checksum

QUORUM_LOG_DIRECTORY = f"{CLUSTER_METADATA_TOPIC}-0"


class QuorumLog:
    """The log of one node, opened from its disk as the last stop or crash has left it.

    :param clean: the last run closed it.
    """

    def __init__(self, disk: Disk, config: LogConfig, now_ms: int, *, clean: bool = False) -> None:
        self.snapshots = Snapshots(disk, QUORUM_LOG_DIRECTORY)
        self._log = UnifiedLog.open(disk, QUORUM_LOG_DIRECTORY, config, now_ms, clean=clean)
        latest = self.snapshots.latest
        if latest is not None and not self._contains(latest):
            self._truncate_fully_and_start_at(latest, now_ms)
        else:
            if latest is not None:
                self._log.maybe_increment_log_start_offset(min(self._log.gapless_from_offset, latest.offset))
            self.snapshots.delete_before(OffsetAndEpoch(self.start_offset, 0))  # of an installation that was cut short
            if self.snapshots.earliest is not None:
                self._log.maybe_increment_log_start_offset(self.snapshots.earliest.offset)

    @property
    def partition_log(self) -> UnifiedLog:
        """The log without its snapshots."""
        return self._log

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""
        return self._log.log_start_offset

    @property
    def size_bytes(self) -> int:
        """Of records and snapshots together."""
        return self._log.size_bytes + self.snapshots.size_bytes

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, be it only in a snapshot."""
        if self._log.latest_epoch != UNDEFINED_EPOCH:
            return self._log.latest_epoch
        return self.snapshots.latest.epoch if self.snapshots.latest else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """By this logs are compared in an election."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def is_behind_or_equal(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends there holds all that may have been committed here (Raft §5.4.1)."""
        return other.is_at_least(self.end)

    def epoch_for_offset(self, offset: int) -> int:
        """Epoch of the record at an offset that the log holds."""
        return self._log.epochs.epoch_for_offset(offset)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset`; at least one, if there is any."""
        return self._log.read(offset, max_bytes, self.end_offset)

    # Growing

    def append_as_leader(self, batch: bytes, epoch: int, now_ms: int) -> int:
        """Place a batch at the end, in this epoch; its base offset."""
        header = BatchHeader.parse(batch)._replace(base_offset=self.end_offset, leader_epoch=epoch)
        self._log.append_placed(header, batch, now_ms)
        return header.base_offset

    def append_as_follower(self, records: bytes, epoch: int, now_ms: int) -> None:
        """Take the batches of a leader, up to the first that is torn, damaged or does not follow (KAFKA-18723).

        :param epoch: of that leader.
        """
        view = memoryview(records)
        while len(view) >= HEADER_SIZE_BYTES:
            header = BatchHeader.parse(view)
            if not self._follows(header, view, epoch):
                return
            self._log.append_placed(header, view, now_ms)
            view = view[header.size_bytes :]

    def _follows(self, header: BatchHeader, view: memoryview, epoch: int) -> bool:
        return (
            header.magic == MAGIC
            and HEADER_SIZE_BYTES <= header.size_bytes <= len(view)
            and header.base_offset == self.end_offset
            and self.last_epoch <= header.leader_epoch <= epoch
            and header.crc == checksum(view[: header.size_bytes])
        )

    def flush(self) -> None:
        """Make every record durable."""
        self._log.flush()

    def close(self) -> None:
        """Make every record durable, and let go of the files."""
        self._log.close()

    # Where logs part

    def diverging_epoch(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """Where a log that ends at `offset` with a record of `epoch` may have parted from this one; null if it has not.

        The answer is the largest epoch here that is not above the other's, and where it ended.
        """
        if offset == 0:
            return None
        end = self.end_offset_for_epoch(epoch)
        return end if end.epoch != epoch or end.offset < offset else None

    def snapshot_for(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """The snapshot that a log which ends so must begin with; null if it can go on from what is here."""
        earliest, latest = self.snapshots.earliest, self.snapshots.latest
        if earliest is None or latest is None:
            return None
        is_cut_off = (
            offset == 0  # a log segment could serve too, but a snapshot is always shorter
            or offset < self.start_offset
            or (offset == self.start_offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        )
        return latest if is_cut_off else None

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch not above this one, and where it ended."""
        found, end_offset = self._log.end_offset_for_epoch(epoch)
        earliest = self.snapshots.earliest
        if found == UNDEFINED_EPOCH:
            return self.end
        if earliest is not None and end_offset == earliest.offset and found == epoch:
            return earliest  # all that is left of such an epoch lies in the snapshot
        return OffsetAndEpoch(end_offset, found)

    def truncate_to_end_offset(self, divergence: OffsetAndEpoch, now_ms: int) -> None:
        """Drop what a leader that answered this divergence cannot have (KIP-101, 279)."""
        local = self.end_offset_for_epoch(divergence.epoch)
        if divergence.epoch == 0:
            offset = min(divergence.offset, self.end_offset)
        elif local.epoch == divergence.epoch:
            offset = min(local.offset, divergence.offset)
        else:
            offset = local.offset
        self._log.truncate_to(offset, now_ms)

    # Snapshots

    def store_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        """Keep a snapshot, durably."""
        self.snapshots.store(snapshot_id, data)

    def install_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes, now_ms: int) -> None:
        """Put a snapshot of the leader in the place of everything: log and older snapshots."""
        self.snapshots.store(snapshot_id, data)
        self._truncate_fully_and_start_at(snapshot_id, now_ms)

    def _truncate_fully_and_start_at(self, snapshot_id: OffsetAndEpoch, now_ms: int) -> None:
        self._log.truncate_fully_and_start_at(snapshot_id.offset, now_ms)
        self.snapshots.delete_before(snapshot_id)

    def _contains(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Whether the snapshot's last record is the log's own, or lay before its start, where epochs are forgotten."""
        if snapshot_id.offset > self.end_offset:
            return False
        return self.epoch_for_offset(snapshot_id.offset - 1) in {snapshot_id.epoch, UNDEFINED_EPOCH}

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch, now_ms: int) -> None:
        """Let the log begin at a snapshot that is there; older snapshots go first, then whole segments."""
        self.snapshots.delete_before(snapshot_id)
        self._log.maybe_increment_log_start_offset(snapshot_id.offset)
        if self._log.apply_retention(now_ms, snapshot_id.offset):
            self._log.delete_below_start()
