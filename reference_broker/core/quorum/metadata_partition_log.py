"""The partition log of `__cluster_metadata-0`: what the quorum needs of a log beyond what clients and brokers do.

Rules of this file:
- Batches come placed: a leader gives them offset and epoch, a follower takes them byte for byte as its leader has them.
- Getting shorter is durable before anything is answered. A truncation that a crash undid would bring back records of an
  epoch that the epoch checkpoint, which is durable at once, no longer knows.
"""

from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader, Bytes


class MetadataPartitionLog(PartitionLog):
    """A log that only the quorum writes."""

    def append_placed(self, header: BatchHeader, batch: Bytes, now_ms: int) -> None:
        """Write one batch under this header, whose offset and epoch follow those of the log."""
        self._roll_if_due(header, now_ms)
        self.epochs.assign(header.leader_epoch, header.base_offset)
        self._segments[-1].append(header, memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes])

    def truncate_durably(self, offset: int, now_ms: int) -> None:
        """Drop everything from `offset` on."""
        self.truncate_to(offset, now_ms)
        self._disk.flush(self._segments[-1].log_path)
        self._disk.flush_directory(self._directory)

    def begin_again_at(self, offset: int, now_ms: int) -> None:
        """Drop everything; the next record has this offset."""
        self.epochs.truncate_from_end(0)
        while self._segments:
            self._segments.pop().delete()
        self._segments = [self._loader(now_ms).create(offset)]
        self._disk.flush_directory(self._directory)
        self.log_start_offset = self.recovery_point = offset
