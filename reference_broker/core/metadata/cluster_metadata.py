"""What this node knows of its cluster: the image that the committed records of `__cluster_metadata-0` make.

Rules of this file:
- Only committed records are applied, those below the quorum's high watermark: what is in the image is never undone.
- What is committed has to be applied. Where that fails, the node must not go on (`MetadataFaultError`).
- A snapshot makes a new image; nobody may keep a reference to an older one, or to anything in it, across events.
"""

from collections.abc import Iterator

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.protocol.metadata_records import MetadataRecord, decode_metadata_record
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.protocol.records import decode_batches

_READ_SIZE_BYTES = 1024 * 1024


class MetadataFaultError(Exception):
    """A committed record cannot be read or applied: this node would go on with another cluster than all others."""


class ClusterMetadata:
    """The committed image, begun with the newest snapshot of the log.

    `offset` is that of the last record that is in it, -1 for none, and `timestamp_ms` its time; `applied_bytes` counts
    what of the log was applied since the last snapshot.
    """

    def __init__(self, log: QuorumLog) -> None:
        self._log = log
        self.image = MetadataImage()
        self.offset = self.timestamp_ms = -1
        self.applied_bytes = 0
        self.rebuild()

    def rebuild(self) -> None:
        """Begin again with the newest snapshot, if there is one."""
        latest = self._log.snapshots.latest
        if latest is None:
            return
        self.image = MetadataImage()
        self.offset = latest.offset - 1
        self.applied_bytes = 0
        data = self._log.snapshots.read(latest, 0, self._log.snapshots.size(latest))
        self._apply(data)

    def advance(self, high_watermark: int) -> list[MetadataRecord]:
        """Apply the records that are committed now and were not before; they are returned."""
        applied: list[MetadataRecord] = []
        while self.offset + 1 < high_watermark:
            data = self._log.read(self.offset + 1, _READ_SIZE_BYTES)
            if not data or BatchHeader.parse(data).base_offset > self.offset + 1:
                raise MetadataFaultError(f"behind offset {self.offset}: records are missing")
            for batch, header in _batches(data, high_watermark):
                if not header.is_control:
                    applied += self._apply(batch)
                self.offset, self.timestamp_ms = header.last_offset, header.max_timestamp_ms
                self.applied_bytes += header.size_bytes
        return applied

    def _apply(self, batches: bytes) -> list[MetadataRecord]:
        """Take in every record of a type that this broker knows; a log of Kafka's has more."""
        try:
            values = (record.value for _, record in decode_batches(batches))
            decoded = [decode_metadata_record(value) for value in values if value is not None]
            known = [record for record in decoded if record is not None]
            for record in known:
                self.image.apply(record)
        except Exception as error:
            raise MetadataFaultError(f"behind offset {self.offset}: {type(error).__name__}: {error}") from error
        return known


def _batches(data: bytes, end_offset: int) -> Iterator[tuple[bytes, BatchHeader]]:
    """Batch by batch; the high watermark lies between two of them always."""
    position = 0
    while position < len(data):
        header = BatchHeader.parse(data, position)
        if header.base_offset >= end_offset:
            return
        yield data[position : position + header.size_bytes], header
        position += header.size_bytes
