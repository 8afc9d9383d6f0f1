"""Defects of recovery after a crash: files are trusted unchecked, or state is not rebuilt from the batches."""

from collections.abc import Callable, Iterator

from chaos.defects.defect import Area
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.index import RELATIVE_OFFSET_MAX
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.replication.log_manager import LogManager
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.record_batch import BatchHeader

_seeds = Area.RECOVERY.seeds
_restore_epochs = UnifiedLog._restore_epochs


@_seeds(BatchFile, "valid_batches", "batches-intact", "corrupt-record", "exception", "log-matching")
def recover_without_checksums(
    self: BatchFile, first_offset: int, last_offset: int
) -> Iterator[tuple[int, BatchHeader]]:
    """A recovery accepts every batch with a valid header, and does not check checksums.

    A batch that was incomplete on disk at a power cut is served, with arbitrary bytes at its end.
    """
    for position, header in self.headers():
        if not first_offset <= header.base_offset <= header.last_offset <= last_offset:
            return
        yield position, header
        first_offset = header.last_offset + 1


@_seeds(LogSegment, "recover", "batches-intact", "exception", "not-converged", "lost-write")
def keep_the_torn_batch(self: LogSegment, observe: Callable[[BatchHeader], None]) -> int:
    """A recovery stops at the torn batch, and does not truncate it.

    Later appends follow the invalid bytes, and cannot be found.
    """
    self._clear_indexes()
    end, self.end_offset = 0, self.base_offset
    for position, header in self._file.valid_batches(self.base_offset, self.base_offset + RELATIVE_OFFSET_MAX):
        self._index(header, position)
        observe(header)
        end, self.end_offset = position + header.size_bytes, header.last_offset + 1
    return self.size_bytes - end


@_seeds(UnifiedLog, "_restore_epochs", "epochs-fit-log", "log-matching")
def trust_the_epoch_checkpoint(self: UnifiedLog, recovered: list[tuple[int, int]]) -> None:
    """Leader epochs are read from the checkpoint, and are not rebuilt from the batches.

    A crash may lose the last change of that file. The log then reports outdated epochs to its followers.
    """
    self.epochs.truncate_from_start(self.log_start_offset)
    self.epochs.truncate_from_end(self.log_end_offset)


@_seeds(UnifiedLog, "_restore_epochs", "recovery-keeps", "epochs-fit-log", "log-matching", "not-converged")
def keep_epochs_beyond_the_recovered_end(self: UnifiedLog, recovered: list[tuple[int, int]]) -> None:
    """Epochs of the checkpoint whose records did not survive a crash are kept.

    The log has an epoch that starts above its end, and reports an epoch of which it has no records.
    """
    entries = dict(self.epochs.entries) | dict(recovered)
    self.epochs.restore(sorted(entries.items()))
    self.epochs.truncate_from_start(self.log_start_offset)


@_seeds(UnifiedLog, "_rebuild_producer_state", "producers-fit-log", "duplicate", "producer-order", source="KAFKA-5435")
def forget_producers_behind_the_snapshot(self: UnifiedLog, now_ms: int) -> None:
    """The state of producers is that of the last snapshot; batches after it are not read.

    After a crash the retry of a batch is appended again.
    """
    self.producers.clear()
    self._snapshots.restore(self.producers, self.log_start_offset, self.log_end_offset)


@_seeds(LogManager, "checkpoint_if_truncated", "recovery-point")
def keep_the_recovery_point_when_truncating(self: LogManager, partition: Partition) -> None:
    """The checkpoint has the old recovery point of a truncated log until the next periodic checkpoint.

    If the broker crashes before that, new records at the truncated offsets are treated as durable, and are not checked.
    Batches that a power cut has torn are served.
    """
