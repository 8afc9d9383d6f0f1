"""Writes of the active controller to `__cluster_metadata-0`, accumulated and appended together.

Follows: org.apache.kafka.raft.internals.BatchAccumulator (KIP-595, KIP-631).

Rules of this module:
- `append` assigns offsets at once, because the epoch of a broker is the offset of its registration's first record
  (KIP-631). `flush` appends the batches to the log with one fsync, once all inputs that arrived together are handled.
- The records of one `append` are one batch of any size, so that after a crash either all of them exist or none.
- Only the leader of the quorum appends. Batches that are not flushed when it resigns are discarded (`clear`).
"""

from collections.abc import Sequence

from reference_broker.core.clock import Now
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.protocol.metadata_records import MetadataRecord, encode_metadata_record
from reference_broker.protocol.records import KeyValue, encode_batch


class MetadataWriter:
    """Accumulator of records to append on the leader."""

    def __init__(self, quorum: KafkaRaftClient) -> None:
        self._quorum = quorum
        self._batches: list[bytes] = []
        self._records = 0
        self._epoch = 0

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self._quorum.log.end_offset + self._records

    @property
    def is_empty(self) -> bool:
        """Whether nothing was appended since the last flush."""
        return not self._batches

    def append(self, records: Sequence[MetadataRecord], epoch: int, now: Now) -> int:
        """Append records as one batch and return the offset after the last.

        They are committed once the high watermark reaches that offset.
        """
        values = [KeyValue(None, encode_metadata_record(record)) for record in records]
        self._batches.append(encode_batch(values, now.wall_ms))
        self._records += len(records)
        self._epoch = epoch
        return self.end_offset

    def flush(self, now: Now) -> None:
        """Append the accumulated batches to the log. Raises `NotLeaderError`."""
        batches, self._batches, self._records = self._batches, [], 0
        if batches:
            self._quorum.append(batches, self._epoch, now)

    def clear(self) -> None:
        """Discard the accumulated batches."""
        self._batches, self._records = [], 0
