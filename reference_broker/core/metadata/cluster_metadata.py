"""The committed cluster metadata of a node: the image of the committed records of `__cluster_metadata-0`.

Follows: org.apache.kafka.image.loader.MetadataLoader (KIP-500).

Rules of this module:
- Only committed records are applied: those below the quorum's high watermark. So no change of the image is ever undone.
- If a committed batch is incomplete, or a record cannot be applied, the node must stop (`MetadataFaultError`).
- Records are decoded in steps, because they may be thousands. They are applied together after the last step.
- A snapshot replaces the image; references to an older image or its parts must not be kept across events.
"""

from collections.abc import Iterable, Iterator

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.protocol.metadata_records import MetadataRecord, decode_metadata_record
from reference_broker.protocol.record_batch import BatchError, BatchHeader
from reference_broker.protocol.records import complete_batches, decode_batches
from reference_broker.protocol.steps import Pace, Steps, finish

_READ_SIZE_BYTES = 1024 * 1024


class MetadataFaultError(Exception):
    """A committed record that cannot be read or applied: the image of this node would differ from all others."""


class ClusterMetadata:
    """The committed image, loaded from the newest snapshot and the log.

    `offset` is that of the last applied record, and `timestamp_ms` the max timestamp of the last applied batch; -1 for
    none. A snapshot sets the offset, but not the timestamp. `applied_bytes` is the size of the batches that were
    applied since the last snapshot.
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
        self._apply(finish(self._decode(data, Pace())))

    def advance(self, high_watermark: int) -> Steps[list[MetadataRecord]]:
        """Decode the newly committed records in steps; then apply and return them.

        :raises MetadataFaultError: a batch is missing or incomplete, or a record cannot be decoded or applied.
        """
        pace = Pace()
        decoded: list[MetadataRecord] = []
        last, size_bytes = None, 0
        next_offset = self.offset + 1
        while next_offset < high_watermark:
            for batch, header in self._read(next_offset, high_watermark):
                if not header.is_control:
                    decoded += yield from self._decode(batch, pace)
                last, next_offset = header, header.last_offset + 1
                size_bytes += header.size_bytes
        if last is not None:
            self._apply(decoded)
            self.offset, self.timestamp_ms = last.last_offset, last.max_timestamp_ms
            self.applied_bytes += size_bytes
        return decoded

    def _read(self, offset: int, high_watermark: int) -> Iterator[tuple[bytes, BatchHeader]]:
        """Yield the next batches below the high watermark, which is always at the boundary of a batch.

        :raises MetadataFaultError: a batch is missing or incomplete.
        """
        data = self._log.read(offset, _READ_SIZE_BYTES, high_watermark)
        try:
            if not data or BatchHeader.parse(data).base_offset > offset:
                raise MetadataFaultError(f"records are missing after offset {offset - 1}")
            for position, header in complete_batches(data):
                yield data[position : position + header.size_bytes], header
        except BatchError as error:
            raise self._fault(error) from error

    def _decode(self, batches: bytes, pace: Pace) -> Steps[list[MetadataRecord]]:
        """Decode every record of a known type. A log written by Kafka may have other types, which are ignored."""
        decoded = []
        try:
            for _, record in decode_batches(batches):
                if pace.is_due():
                    yield
                known = None if record.value is None else decode_metadata_record(record.value)
                if known is not None:
                    decoded.append(known)
        except Exception as error:
            raise self._fault(error) from error
        return decoded

    def _apply(self, records: Iterable[MetadataRecord]) -> None:
        try:
            for record in records:
                self.image.apply(record)
        except Exception as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> MetadataFaultError:
        return MetadataFaultError(f"after offset {self.offset}: {type(error).__name__}: {error}")
