"""Snapshots of the metadata log: files `OFFSET-EPOCH.checkpoint` beside its segments.

Follows: org.apache.kafka.snapshot.FileRawSnapshotWriter, org.apache.kafka.snapshot.FileRawSnapshotReader (KIP-630).

A snapshot replaces all records of the log below its end offset. Its id is that offset and the epoch of the last
replaced record. A snapshot consists of batches: a header, the records of the state, and a footer. Offsets in a snapshot
begin at 0.

Rules of this file:
- A snapshot in the directory is complete and durable. The caller assembles a fetched snapshot in memory before `store`.
- Reads are by byte position: a part of a snapshot may begin and end inside a batch.
"""

from bisect import insort
from collections.abc import Sequence

from reference_broker.core.disk import Disk
from reference_broker.core.quorum.control_records import snapshot_footer_batch, snapshot_header_batch
from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.protocol.records import KeyValue, encode_batch

_SUFFIX = ".checkpoint"


class Snapshots:
    """The snapshots in one directory, oldest first."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        names = disk.list(directory) if disk.exists(directory) else []
        self._ids = sorted(_parse(name) for name in names if name.endswith(_SUFFIX))

    @property
    def ids(self) -> Sequence[OffsetAndEpoch]:
        """Ids of the snapshots, oldest first."""
        return self._ids

    @property
    def earliest(self) -> OffsetAndEpoch | None:
        """Id of the oldest snapshot, or null."""
        return self._ids[0] if self._ids else None

    @property
    def latest(self) -> OffsetAndEpoch | None:
        """Id of the newest snapshot, or null."""
        return self._ids[-1] if self._ids else None

    @property
    def second(self) -> OffsetAndEpoch | None:
        """Id of the second oldest snapshot; null if there are fewer than two."""
        return self._ids[1] if len(self._ids) > 1 else None

    @property
    def size_bytes(self) -> int:
        """Total size of all snapshots."""
        return sum(map(self.size, self._ids))

    def earliest_timestamp_ms(self) -> int:
        """Return the wall-clock time at which the oldest snapshot was created: the timestamp of its header batch."""
        return BatchHeader.parse(self.read(self._ids[0], 0, HEADER_SIZE_BYTES)).max_timestamp_ms

    def __contains__(self, snapshot_id: OffsetAndEpoch) -> bool:
        return snapshot_id in self._ids

    def size(self, snapshot_id: OffsetAndEpoch) -> int:
        """Return the size of an existing snapshot, in bytes."""
        return self._disk.size(self._path(snapshot_id))

    def read(self, snapshot_id: OffsetAndEpoch, position: int, length: int) -> bytes:
        """Return at most `length` bytes of an existing snapshot, from a byte position on."""
        return self._disk.read(self._path(snapshot_id), position, length)

    def store(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        """Store a complete snapshot, durably."""
        self._disk.replace(self._path(snapshot_id), data)
        if snapshot_id not in self._ids:
            insort(self._ids, snapshot_id)

    def delete_before(self, snapshot_id: OffsetAndEpoch) -> None:
        """Delete all older snapshots, durably. They must not reappear after the log start offset has advanced."""
        if not self._ids or self._ids[0] >= snapshot_id:
            return
        while self._ids and self._ids[0] < snapshot_id:
            self._disk.delete(self._path(self._ids.pop(0)))
        self._disk.flush_directory(self._directory)

    def _path(self, snapshot_id: OffsetAndEpoch) -> str:
        return f"{self._directory}/{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{_SUFFIX}"


def _parse(name: str) -> OffsetAndEpoch:
    offset, _, epoch = name.removesuffix(_SUFFIX).partition("-")
    return OffsetAndEpoch(int(offset), int(epoch))


def encode_snapshot(
    epoch: int, batches: Sequence[Sequence[KeyValue]], *, last_contained_log_timestamp_ms: int, now_ms: int
) -> bytes:
    """Return the bytes of a snapshot.

    :param epoch: epoch of the snapshot id.
    :param batches: the records of the state, by batch.
    :param last_contained_log_timestamp_ms: timestamp of the last record of the log that the snapshot replaces.
    """
    parts = [
        snapshot_header_batch(last_contained_log_timestamp_ms, now_ms),
        *(encode_batch(batch, now_ms) for batch in batches),
        snapshot_footer_batch(now_ms),
    ]
    data = bytearray()
    next_offset = 0
    for part in parts:
        header = BatchHeader.parse(part)._replace(base_offset=next_offset, leader_epoch=epoch)
        data += header.pack() + part[HEADER_SIZE_BYTES:]
        next_offset = header.last_offset + 1
    return bytes(data)
