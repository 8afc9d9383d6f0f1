"""The committed cluster metadata of a node: the image of the committed records of `__cluster_metadata-0`.

Follows: org.apache.kafka.image.loader.MetadataLoader (KIP-500).

Rules of this module:
- Only committed records are applied, those below the quorum's high watermark: changes of the image are never undone.
- If a committed record cannot be applied, the node must stop (`MetadataFaultError`).
- A snapshot replaces the image; references to an older image or its parts must not be kept across events.
"""

from collections.abc import Iterator

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.protocol.metadata_records import MetadataRecord, decode_metadata_record
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.protocol.records import decode_batches

_READ_SIZE_BYTES = 1024 * 1024


class MetadataFaultError(Exception):
    """A committed record that cannot be read or applied: the image of this node would differ from all others."""


class ClusterMetadata:
    """The committed image, loaded from the newest snapshot and the log.

    `offset` and `timestamp_ms` are those of the last applied record, -1 for none; `applied_bytes` is the size of
    the log applied since the last snapshot.
    """

    def __init__(self, log: QuorumLog) -> None:
        self._log = log
        self.image = MetadataImage()
        self.offset = self.timestamp_ms = -1
        self.applied_bytes = 0
        self.rebuild()

    def rebuild(self) -> None:
        """Load the newest snapshot, if there is one."""
        latest = self._log.snapshots.latest
        if latest is None:
            return
        self.image = MetadataImage()
        self.offset = latest.offset - 1
        self.applied_bytes = 0
        data = self._log.snapshots.read(latest, 0, self._log.snapshots.size(latest))
        self._apply(data)

    def advance(self, high_watermark: int) -> list[MetadataRecord]:
        """Apply the newly committed records and return them."""
        applied: list[MetadataRecord] = []
        while self.offset + 1 < high_watermark:
            data = self._log.read(self.offset + 1, _READ_SIZE_BYTES)
            if not data or BatchHeader.parse(data).base_offset > self.offset + 1:
                raise MetadataFaultError(f"records are missing after offset {self.offset}")
            for batch, header in _batches(data, high_watermark):
                if not header.is_control:
                    applied += self._apply(batch)
                self.offset, self.timestamp_ms = header.last_offset, header.max_timestamp_ms
                self.applied_bytes += header.size_bytes
        return applied

    def _apply(self, batches: bytes) -> list[MetadataRecord]:
        """Apply every record of a known type; a log written by Kafka may have others."""
        try:
            values = (record.value for _, record in decode_batches(batches))
            decoded = [decode_metadata_record(value) for value in values if value is not None]
            known = [record for record in decoded if record is not None]
            for record in known:
                self.image.apply(record)
        except Exception as error:
            raise MetadataFaultError(f"after offset {self.offset}: {type(error).__name__}: {error}") from error
        return known


def _batches(data: bytes, end_offset: int) -> Iterator[tuple[bytes, BatchHeader]]:
    """Yield the batches below an offset; the high watermark is always at the boundary of a batch."""
    position = 0
    while position < len(data):
        header = BatchHeader.parse(data, position)
        if header.base_offset >= end_offset:
            return
        yield data[position : position + header.size_bytes], header
        position += header.size_bytes
