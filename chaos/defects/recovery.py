"""Defects of a start after a crash: what is believed of the disk, and what is found again from the batches."""

from collections.abc import Callable, Iterator
from uuid import UUID

from chaos.defects.defect import Area
from reference_broker.core import clean_shutdown, node
from reference_broker.core.clean_shutdown import CLEAN_SHUTDOWN_FILE
from reference_broker.core.clock import Now
from reference_broker.core.disk import Disk
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.index import RELATIVE_OFFSET_MAX
from reference_broker.core.log.loading import SegmentLoader
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.log.producers import Producers
from reference_broker.core.log.segment import Segment
from reference_broker.core.log.snapshots import ProducerSnapshots
from reference_broker.core.replication.logs import Logs
from reference_broker.protocol.record_batch import BatchHeader

_seeds = Area.RECOVERY.seeds
_load = SegmentLoader.load
_open = Logs.open
_recover = Segment.recover
_restore_epochs = PartitionLog._restore_epochs
_take_marker = clean_shutdown.take_marker


@_seeds(BatchFile, "valid_batches", "corrupt-record", "exception", "log-matching")
def recover_without_checksums(
    self: BatchFile, first_offset: int, last_offset: int
) -> Iterator[tuple[int, BatchHeader]]:
    """A recovery takes every batch whose header reads well, and does not look at checksums.

    A batch that was half on disk when the power went is served, with whatever its rest holds.
    """
    for position, header in self.headers():
        if not first_offset <= header.base_offset <= header.last_offset <= last_offset:
            return
        yield position, header
        first_offset = header.last_offset + 1


@_seeds(Segment, "recover", "batches-intact", "exception", "not-converged", "lost-write")
def keep_the_torn_batch(self: Segment, observe: Callable[[BatchHeader], None]) -> int:
    """A recovery stops at the torn batch, and does not cut it off.

    What is appended next lies behind the rubbish, where nobody finds it.
    """
    self._clear_indexes()
    end, self.end_offset = 0, self.base_offset
    for position, header in self._file.valid_batches(self.base_offset, self.base_offset + RELATIVE_OFFSET_MAX):
        self._index(header, position)
        observe(header)
        end, self.end_offset = position + header.size_bytes, header.last_offset + 1
    return self.size_bytes - end


@_seeds(Segment, "recover", "log-matching", "exception", "poll-skip")
def keep_segments_behind_a_torn_one(self: Segment, observe: Callable[[BatchHeader], None]) -> int:
    """A recovery that cut a segment short goes on with the next one.

    There is a hole in the log, and records stand behind it.
    """
    _recover(self, observe)
    return 0


@_seeds(node, "take_marker", "log-matching", "lost-write", "exception", source="KAFKA-10471")
def leave_the_clean_shutdown_marker(disk: Disk) -> int | None:
    """The marker of a clean stop is read and stays.

    The next crash is taken for a clean stop, too, and nothing is recovered.
    """
    content = None
    if disk.exists(CLEAN_SHUTDOWN_FILE):
        content = disk.read(CLEAN_SHUTDOWN_FILE, 0, disk.size(CLEAN_SHUTDOWN_FILE))
    epoch = _take_marker(disk)
    if content is not None:
        disk.replace(CLEAN_SHUTDOWN_FILE, content)
    return epoch


@_seeds(PartitionLog, "_restore_epochs", "epochs-fit-log", "log-matching")
def trust_the_epoch_checkpoint(self: PartitionLog, recovered: list[tuple[int, int]]) -> None:
    """Leader epochs are what their file says, and are not looked for in the batches.

    A crash may take the last change of that file. The log then tells its followers of epochs that ended long ago.
    """
    self.epochs.truncate_from_start(self.log_start_offset)
    self.epochs.truncate_from_end(self.log_end_offset)


@_seeds(PartitionLog, "_restore_epochs", "epochs-fit-log", "log-matching", source="KAFKA-10432")
def recover_no_epoch_zero(self: PartitionLog, recovered: list[tuple[int, int]]) -> None:
    """Epoch 0 is passed over when epochs are found again in the batches.

    A log of the first leader has no epoch at all after a crash that took the checkpoint, and does not find out where it
    has parted.
    """
    _restore_epochs(self, [entry for entry in recovered if entry[0] > 0])


@_seeds(PartitionLog, "_restore_epochs", "recovery-keeps", "epochs-fit-log", "log-matching", "not-converged")
def keep_epochs_beyond_the_recovered_end(self: PartitionLog, recovered: list[tuple[int, int]]) -> None:
    """Epochs of the checkpoint whose records did not survive a crash are kept.

    The log claims an epoch at an offset above its end, and grows into it.
    """
    entries = dict(self.epochs.entries) | dict(recovered)
    self.epochs.restore(sorted(entries.items()))
    self.epochs.truncate_from_start(self.log_start_offset)


@_seeds(PartitionLog, "_restore_producers", "producers-fit-log", "duplicate", "producer-order", source="KAFKA-5435")
def forget_producers_behind_the_snapshot(self: PartitionLog) -> None:
    """The state of producers is that of the last snapshot; batches behind it are not read.

    After a crash a batch that is sent again is written again.
    """
    self.producers.clear()
    self._snapshots.restore(self.producers, self.log_end_offset)


@_seeds(ProducerSnapshots, "restore", "lost-write", "producers-fit-log")
def restore_a_snapshot_beyond_the_end(self: ProducerSnapshots, producers: Producers, log_end_offset: int) -> int:
    """A snapshot of the producers is taken although it reaches beyond the log's end.

    Batches that did not survive the crash count as written: sent again, they are acknowledged and not appended.
    """
    for offset in reversed(self.offsets()):
        path = self._path(offset)
        if producers.load(self._disk.read(path, 0, self._disk.size(path))):
            return min(offset, log_end_offset)
        self._disk.delete(path)
    return 0


@_seeds(Logs, "open", "watermark-within-log", "watermark-regress")
def forget_the_log_start(  # noqa: PLR0917 - as many as it has there
    self: Logs, topic: str, topic_id: UUID, index: int, config: LogConfig, now: Now
) -> PartitionLog:
    """The checkpoint of log starts is not read.

    Records that were deleted are there again after a restart.
    """
    self._log_starts = {}
    return _open(self, topic, topic_id, index, config, now)


@_seeds(Logs, "high_watermark", "watermark-within-log", "read-above-watermark")
def begin_with_everything_committed(self: Logs, topic: str, index: int) -> int:
    """A replica that is opened takes its log's end for the high watermark.

    After a restart consumers read records that are not committed, and which the next leader may not have.
    """
    return RELATIVE_OFFSET_MAX
