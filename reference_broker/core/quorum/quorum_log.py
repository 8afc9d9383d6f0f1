"""Log of the quorum: segments with records, snapshots, and truncation of a log that diverges from the leader's.

Follows: org.apache.kafka.raft.internals.KafkaRaftLog (KIP-595, KIP-630).

Rules of this file:
- The log starts at 0, or at the end offset of its oldest snapshot.
- A snapshot fetched from the leader replaces the log with an empty log that starts at the snapshot's end offset. A
  crash may interrupt the replacement. It is then completed when the log is opened, because the log lacks the last
  record of its newest snapshot.
- A power cut may restore deleted segments, with a gap after them. When the log is opened, the log start offset moves to
  the end of the last gap. The newest snapshot contains the records before that.
- The last epoch is that of the newest snapshot if the log is empty, or 0 if there is no snapshot either.
- The caller flushes appended records (`flush`) before any effect depends on them.
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
    """Log of one node, opened from its disk after a shutdown or crash.

    :param clean: whether the log was closed by a clean shutdown.
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
            self.snapshots.delete_before(OffsetAndEpoch(self.start_offset, 0))  # left by an interrupted installation
            if self.snapshots.earliest is not None:
                self._log.maybe_increment_log_start_offset(self.snapshots.earliest.offset)

    @property
    def partition_log(self) -> UnifiedLog:
        """The log without its snapshots."""
        return self._log

    @property
    def start_offset(self) -> int:
        """Log start offset: the first offset that can be read."""
        return self._log.log_start_offset

    @property
    def size_bytes(self) -> int:
        """Size of the records and snapshots."""
        return self._log.size_bytes + self.snapshots.size_bytes

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of the newest snapshot if the log is empty; 0 if there is no snapshot either."""
        if self._log.latest_epoch != UNDEFINED_EPOCH:
            return self._log.latest_epoch
        return self.snapshots.latest.epoch if self.snapshots.latest else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """End offset and last epoch. Elections compare logs by them."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def is_behind_or_equal(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends at `other` is at least as up-to-date as this one (Raft §5.4.1)."""
        return other.is_at_least(self.end)

    def epoch_for_offset(self, offset: int) -> int:
        """Return the epoch of the record at an offset of the log."""
        return self._log.epochs.epoch_for_offset(offset)

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Return whole batches, beginning with the batch that contains `offset`.

        :param max_bytes: maximum size of the result; the first batch is returned even if it is larger.
        :param end_offset: only batches below this offset are returned (default: the log end offset).
        """
        return self._log.read(offset, max_bytes, self.end_offset if end_offset is None else end_offset)

    # Appending

    def append_as_leader(self, batch: bytes, epoch: int, now_ms: int) -> int:
        """Append a batch with the leader's epoch, and return the base offset that is assigned to it."""
        header = BatchHeader.parse(batch)._replace(base_offset=self.end_offset, leader_epoch=epoch)
        self._log.append_placed(header, batch, now_ms)
        return header.base_offset

    def append_as_follower(self, records: bytes, epoch: int, now_ms: int) -> None:
        """Append a leader's batches, up to the first one that is incomplete, corrupt or out of order (KAFKA-18723).

        :param epoch: the leader's epoch.
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
        """Flush every record, and complete the active segment."""
        self._log.close()

    # Divergence

    def diverging_epoch(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """Return the diverging epoch for a replica whose log ends at `offset` with `epoch`.

        The diverging epoch is the largest epoch of this log that is not above `epoch`, with its end offset. The result
        is null if the replica's log is a prefix of this log.
        """
        if offset == 0:
            return None
        end = self.end_offset_for_epoch(epoch)
        return end if end.epoch != epoch or end.offset < offset else None

    def snapshot_for(self, offset: int, epoch: int) -> OffsetAndEpoch | None:
        """Return the snapshot that a replica whose log has this end must fetch; null if it can fetch records."""
        earliest, latest = self.snapshots.earliest, self.snapshots.latest
        if earliest is None or latest is None:
            return None
        is_cut_off = (
            offset == 0  # even if this log starts at 0, because a snapshot is usually shorter
            or offset < self.start_offset
            or (offset == self.start_offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        )
        return latest if is_cut_off else None

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch of this log that is not above `epoch`, and its end offset."""
        found, end_offset = self._log.end_offset_for_epoch(epoch)
        earliest = self.snapshots.earliest
        if found == UNDEFINED_EPOCH:
            return self.end
        if earliest is not None and end_offset == earliest.offset and found == epoch:
            return earliest  # all records of this epoch are in the snapshot
        return OffsetAndEpoch(end_offset, found)

    def truncate_to_end_offset(self, divergence: OffsetAndEpoch, now_ms: int) -> None:
        """Remove the records that the leader cannot have, given its diverging epoch (KIP-101, KIP-279)."""
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
        """Store a snapshot of this node, durably. The log stays as it is."""
        self.snapshots.store(snapshot_id, data)

    def install_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes, now_ms: int) -> None:
        """Replace the log and older snapshots with a snapshot of the leader."""
        self.snapshots.store(snapshot_id, data)
        self._truncate_fully_and_start_at(snapshot_id, now_ms)

    def _truncate_fully_and_start_at(self, snapshot_id: OffsetAndEpoch, now_ms: int) -> None:
        self._log.truncate_fully_and_start_at(snapshot_id.offset, now_ms)
        self.snapshots.delete_before(snapshot_id)

    def _contains(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Whether the log has the last record that the snapshot replaces.

        True, too, if the log starts after that record. The epoch of the record is then unknown.
        """
        if snapshot_id.offset > self.end_offset:
            return False
        return self.epoch_for_offset(snapshot_id.offset - 1) in {snapshot_id.epoch, UNDEFINED_EPOCH}

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch, now_ms: int) -> None:
        """Delete the snapshots before a stored snapshot, then the segments below its end offset."""
        self.snapshots.delete_before(snapshot_id)
        self._log.maybe_increment_log_start_offset(snapshot_id.offset)
        if self._log.apply_retention(now_ms, snapshot_id.offset):
            self._log.delete_below_start()
