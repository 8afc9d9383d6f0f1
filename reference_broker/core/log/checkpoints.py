"""Checkpoint files of the log directory, in Kafka's format: a version line, a count, and a line per entry.

Follows: org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile,
org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile,
org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler.

    0
    2
    orders 0 1500
    orders 1 1498

A malformed file is treated as missing. If the recovery points or the leader epochs are missing, the broker reads all
segments. If the log start offsets or the high watermarks are missing, they begin at their lowest possible values.

`.kafka_cleanshutdown` is JSON with the broker's epoch. A node writes this file last when it stops. It reads and deletes
the file first when it starts. So the file does not exist after a crash.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from reference_broker.core.disk import Disk

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

_VERSION = "0"
_UNKNOWN_EPOCH = -1


def _content(lines: Sequence[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def _read_lines(disk: Disk, path: str) -> list[list[str]]:
    """Return the fields of each line; an empty list if the file is missing or damaged."""
    if not disk.exists(path):
        return []
    try:
        text = disk.read(path, 0, disk.size(path)).decode()
        version, count, *lines = text.splitlines()
    except ValueError:
        return []
    whole = version == _VERSION and count == str(len(lines)) and text.endswith("\n")
    return [line.split() for line in lines] if whole else []


def write_offsets(disk: Disk, path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Write an offset for each topic partition, atomically and durably."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    disk.replace(path, _content(lines))


def read_offsets(disk: Disk, path: str) -> dict[tuple[str, int], int]:
    """Read the offsets of a checkpoint; empty if the file is missing or damaged."""
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in _read_lines(disk, path)}
    except ValueError:
        return {}


def write_epochs(disk: Disk, path: str, entries: Iterable[tuple[int, int]]) -> None:
    """Write leader epochs and their start offsets atomically. The caller makes them durable (`Disk.write`)."""
    disk.write(path, _content([f"{epoch} {start_offset}" for epoch, start_offset in entries]))


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    """Read the leader epochs of a checkpoint; empty if the file is missing or damaged."""
    try:
        return [(int(epoch), int(start_offset)) for epoch, start_offset in _read_lines(disk, path)]
    except ValueError:
        return []


def take_clean_shutdown(disk: Disk) -> int | None:
    """Delete the clean shutdown file and return its broker epoch: -1 if unreadable, null if there is no file."""
    if not disk.exists(CLEAN_SHUTDOWN_FILE):
        return None
    content = disk.read(CLEAN_SHUTDOWN_FILE, 0, disk.size(CLEAN_SHUTDOWN_FILE))
    disk.delete(CLEAN_SHUTDOWN_FILE)
    disk.flush_directory("")
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return _UNKNOWN_EPOCH


def write_clean_shutdown(disk: Disk, broker_epoch: int) -> None:
    """Write the clean shutdown file. Everything else must be durable already."""
    disk.replace(CLEAN_SHUTDOWN_FILE, json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode())
