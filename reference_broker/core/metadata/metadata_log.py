"""`__cluster_metadata-0`: the log from which a broker knows everything about its cluster.

Rules of this file:
- `commit` is the one way to change metadata: the records are appended and flushed first, and only then applied.
- On one node an append that is flushed is committed. With a quorum (KIP-595) it comes to mean that a majority has it.
"""

from collections.abc import Sequence

from reference_broker.core.clock import Now
from reference_broker.core.disk import Disk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replay import records_of
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.protocol.metadata_records import (
    MetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from reference_broker.protocol.records import KeyValue, encode_batch

METADATA_LOG_DIRECTORY = f"{CLUSTER_METADATA_TOPIC}-0"
_QUORUM_EPOCH = 1
_CONFIG = LogConfig(max_message_bytes=2**31 - 1)
"""What is committed at once is one batch, however large, so that all of it is there after a crash or nothing."""


class MetadataLog:
    """The metadata log of a node and the image that its records make."""

    def __init__(self, disk: Disk, now: Now, *, clean: bool) -> None:
        self._log = PartitionLog.open(disk, METADATA_LOG_DIRECTORY, _CONFIG, now.wall_ms, clean=clean)
        self.image = MetadataImage()
        for record in records_of(self._log):
            assert record.value is not None
            decoded = decode_metadata_record(record.value)
            if decoded is not None:
                self.image.apply(decoded)

    @property
    def end_offset(self) -> int:
        """The offset of the next record; no image has taken in more than this."""
        return self._log.log_end_offset

    def commit(self, records: Sequence[MetadataRecord], now: Now) -> None:
        """Make these records part of the metadata, all or none of them."""
        if not records:
            return
        values = [KeyValue(None, encode_metadata_record(record)) for record in records]
        self._log.append(encode_batch(values, now.wall_ms), leader_epoch=_QUORUM_EPOCH, now_ms=now.wall_ms)
        self._log.flush()
        for record in records:
            self.image.apply(record)

    def close(self) -> None:
        """Flush and let go of the files."""
        self._log.close(clean=True)
