"""Defects of durability: acknowledgements before the flush. Power cuts reveal them."""

from bisect import insort
from types import SimpleNamespace
from typing import cast

from chaos.defects.defect import Area
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.snapshots import Snapshots
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, NO_PRODUCER_ID, BatchHeader, Bytes

_NATS = "https://jepsen.io/analyses/nats-2.12.1"

_seeds = Area.DURABILITY.seeds
_write_election = ElectionStateStore.write


@_seeds(QuorumLog, "flush", "quorum-durable", "quorum-committed-equal", "exception", source="KAFKA-17332")
def acknowledge_metadata_before_the_flush(self: QuorumLog) -> None:
    """A voter reports its log end before it has flushed the records.

    If a majority of the voters loses its power at the same time, acknowledged changes are lost.
    """


@_seeds(UnifiedLog, "append_placed", "lost-write", "recovery-point", source=_NATS)
def pass_over_flush_messages(self: UnifiedLog, header: BatchHeader, batch: Bytes, now_ms: int) -> None:
    """`flush.messages` is ignored: a batch is acknowledged before it is flushed.

    A power cut of all replicas at once loses acknowledged records, although the topic requires a flush of each one.
    """
    self._roll_if_due(header, now_ms)
    self.epochs.assign(header.leader_epoch, header.base_offset)
    self._segments[-1].append(header, memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes])
    if header.producer_id != NO_PRODUCER_ID:
        self.producers.update(header)


@_seeds(UnifiedLog, "append_placed", "lost-write", "recovery-point")
def flush_before_the_append(self: UnifiedLog, header: BatchHeader, batch: Bytes, now_ms: int) -> None:
    """With `flush.messages=1`, the log is flushed before a batch is appended, and not afterwards.

    A power cut loses the last acknowledged batch.
    """
    self._roll_if_due(header, now_ms)
    if self.log_end_offset - self.recovery_point >= 1 and self.config.flush_messages == 1:
        self.flush()
    self.epochs.assign(header.leader_epoch, header.base_offset)
    self._segments[-1].append(header, memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes])
    if header.producer_id != NO_PRODUCER_ID:
        self.producers.update(header)


@_seeds(UnifiedLog, "flush", "quorum-durable", "lost-write", "quorum-committed-equal", "exception", source="KAFKA-3968")
def leave_the_directory_unflushed(self: UnifiedLog) -> None:
    """A flush makes the content of a new segment durable, but not its file's name in the directory.

    After a power cut the whole segment is missing, although it was flushed.
    """
    paths = self._take_unflushed(with_active_indexes=False)
    if paths:
        self._disk.flush(*paths)


@_seeds(BatchFile, "append", "quorum-durable", "lost-write", "quorum-committed-equal", "exception", source=_NATS)
def take_a_file_for_durable_after_one_flush(self: BatchFile, header: BatchHeader, records: Bytes) -> int:
    """A file that was flushed once counts as durable, even after further appends.

    Only the first batches of each segment survive a power cut.
    """
    position = self.size_bytes
    self._disk.append(self.path, header.pack(), records)
    self.size_bytes += header.size_bytes
    return position


@_seeds(UnifiedLog, "roll", "recovery-point", "lost-write", "log-matching", "exception")
def roll_without_a_flush(self: UnifiedLog, now_ms: int) -> None:
    """When a log rolls, its old segment is not flushed, although the recovery point advances to the end of the segment.

    A recovery skips segments below the recovery point. After a power cut the log has a gap, or ends at the roll.
    """
    self.finish()
    self._segments.append(self._loader(now_ms).create(self.log_end_offset))
    self._are_names_durable = False


@_seeds(
    ElectionStateStore,
    "write",
    "ends-without-fault",
    "quorum-consistent",
    "quorum-one-leader",
    "quorum-epochs-grow",
    "exception",
)
def write_the_vote_without_a_flush(self: ElectionStateStore, election: ElectionState) -> None:
    """Vote and epoch are written but not flushed.

    After a power cut a voter may vote twice in one epoch.
    """
    disk = SimpleNamespace(replace=self._disk.write)
    _write_election(cast("ElectionStateStore", SimpleNamespace(_disk=disk, _path=self._path)), election)


@_seeds(Snapshots, "store", "ends-without-fault", "quorum-consistent", "quorum-committed-equal", "exception")
def store_snapshots_without_a_flush(self: Snapshots, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
    """A metadata snapshot is not flushed before the records that it replaces are deleted.

    After a power cut both are missing.
    """
    self._disk.write(self._path(snapshot_id), data)
    if snapshot_id not in self._ids:
        insort(self._ids, snapshot_id)
