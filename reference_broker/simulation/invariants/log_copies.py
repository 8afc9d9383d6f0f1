"""Copies of the files of a log. A check can open, damage and change the copies without an effect on the node."""

from typing import cast

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.checkpoints import LEADER_EPOCH_FILE, read_epochs, write_epochs
from reference_broker.core.log.producer_state_manager import ProducerStateManager
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.simulation.disk import SimulatedDisk


def copy_log_files(disk: MemoryDisk, directory: str) -> SimulatedDisk:
    """Copy the files of a log to a new disk. Its `changed` is empty."""
    copy = SimulatedDisk()
    copy.make_directory(directory)
    for name in disk.list(directory):
        copy.append(f"{directory}/{name}", disk.files[f"{directory}/{name}"])
    copy.changed.clear()
    return copy


def copy_crashed_log(log: UnifiedLog) -> MemoryDisk:
    """Copy the files of a log to a new disk, as a power cut may leave them.

    Records above the recovery point may have replaced truncated records, and a power cut may restore files from before
    the truncation. Therefore the leader epoch checkpoint of the copy has an epoch of truncated records, and there is a
    producer snapshot without producers at the log end. Recovery must ignore both.
    """
    copy = copy_log_files(cast("MemoryDisk", log.disk), log.directory)
    epochs_path = f"{log.directory}/{LEADER_EPOCH_FILE}"
    if copy.exists(epochs_path):
        flushed = [entry for entry in read_epochs(copy, epochs_path) if entry[1] < log.recovery_point]
        outdated = log.latest_epoch + 1, max(log.recovery_point, log.log_end_offset - 1)
        write_epochs(copy, epochs_path, [*flushed, outdated])
    if log.log_end_offset > max(log.recovery_point, log.segments[-1].base_offset):
        snapshot = ProducerStateManager().snapshot()
        copy.write(f"{log.directory}/{log.log_end_offset:020d}.snapshot", snapshot)
    return copy
