"""Copies of the files of one log, in which checks may open, damage and change the log."""

from typing import cast

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.checkpoints import LEADER_EPOCH_FILE, read_epochs, write_epochs
from reference_broker.core.log.producer_state_manager import ProducerStateManager
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.simulation.disk import SimulatedDisk


def copied_log(disk: MemoryDisk, directory: str) -> SimulatedDisk:
    """Copy the files of a log. The copy notes which of its files are changed."""
    copy = SimulatedDisk()
    copy.make_directory(directory)
    for name in disk.list(directory):
        copy.append(f"{directory}/{name}", disk.files[f"{directory}/{name}"])
    copy.changed.clear()
    return copy


def crashed_copy(log: UnifiedLog) -> MemoryDisk:
    """Copy the files of a log as a power cut may leave them.

    The files that were written since the last flush have the content from before a truncation: an epoch and a producer
    snapshot of records that other records have replaced.
    """
    copy = copied_log(cast("MemoryDisk", log.disk), log.directory)
    epochs_path = f"{log.directory}/{LEADER_EPOCH_FILE}"
    if copy.exists(epochs_path):
        flushed = [entry for entry in read_epochs(copy, epochs_path) if entry[1] < log.recovery_point]
        truncated = log.latest_epoch + 1, max(log.recovery_point, log.log_end_offset - 1)
        write_epochs(copy, epochs_path, [*flushed, truncated])
    if log.log_end_offset > max(log.recovery_point, log.segments[-1].base_offset):
        snapshot = ProducerStateManager().snapshot()
        copy.write(f"{log.directory}/{log.log_end_offset:020d}.snapshot", snapshot)
    return copy
