"""How the active controller writes to `__cluster_metadata-0`: what it appends goes to the quorum in one go.

Rules of this file:
- `append` gives records their offsets at once, so that a broker's registration can say its own as the broker's epoch
  (KIP-631). They reach the log with `flush`, which comes when all inputs that came together are dealt with: all their
  batches cost one fsync.
- What is appended at once is one batch, however large: all of it is there after a crash, or nothing.
- Only the leader of the quorum appends. What it has not flushed when it leads no more is gone (`clear`).
"""

from collections.abc import Sequence

from reference_broker.core.clock import Now
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.protocol.metadata_records import MetadataRecord, encode_metadata_record
from reference_broker.protocol.records import KeyValue, encode_batch


class MetadataWriter:
    """The end of the metadata log, as its leader has it."""

    def __init__(self, quorum: KafkaRaftClient) -> None:
        self._quorum = quorum
        self._batches: list[bytes] = []
        self._records = 0
        self._epoch = 0

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._quorum.log.end_offset + self._records

    @property
    def is_empty(self) -> bool:
        """Whether nothing was appended since the last flush."""
        return not self._batches

    def append(self, records: Sequence[MetadataRecord], epoch: int, now: Now) -> int:
        """Write records as one batch behind all others; the offset behind the last of them.

        They are committed once the high watermark is there.
        """
        values = [KeyValue(None, encode_metadata_record(record)) for record in records]
        self._batches.append(encode_batch(values, now.wall_ms))
        self._records += len(records)
        self._epoch = epoch
        return self.end_offset

    def flush(self, now: Now) -> None:
        """Give the quorum what was appended since the last time. Raises `NotLeaderError`."""
        batches, self._batches, self._records = self._batches, [], 0
        if batches:
            self._quorum.append(batches, self._epoch, now)

    def clear(self) -> None:
        """Forget what was appended since the last time."""
        self._batches, self._records = [], 0
