"""Defects of the server's access to files, such as missing flushes and errors of the disk that are ignored.

Most of them have an effect only after a power cut, a disk error, a kill or a restart. The simulation cannot detect
them, because it has its own implementation of `Disk` in place of `FileDisk`.
"""

import os
from pathlib import Path
from uuid import UUID

from chaos.defects.defect import Area
from reference_broker.core import node
from reference_broker.core.disk import Disk
from reference_broker.core.log.checkpoints import take_clean_shutdown, write_clean_shutdown
from reference_broker.server import log_directory
from reference_broker.server.file_disk import OPEN_FILES_MAX, FileDisk
from reference_broker.server.log_directory import LogDirectory

_seeds = Area.FILES.seeds
_flush = FileDisk.flush
_append = FileDisk.append
_identify = LogDirectory._identify
_MODE = 0o644


# --- missing flushes


@_seeds(FileDisk, "flush", "not-recovered", "lost-write", source="https://jepsen.io/analyses/nats-2.12.1")
def take_a_write_for_durable(self: FileDisk, *paths: str) -> None:
    """A flush does nothing, so data that is only in the operating system's cache counts as durable.

    A power cut loses acknowledged records, although the topic requires a flush per record.
    """


@_seeds(FileDisk, "flush_directory", "lost-write", "not-recovered", source="KAFKA-3968")
def flush_no_directory(self: FileDisk, *paths: str) -> None:
    """Files are flushed, but the directories that contain them are not.

    A power cut removes new segments from their directory, and their records are lost, although they were flushed.
    """


@_seeds(FileDisk, "_put", "not-recovered", "lost-write", source="https://lwn.net/Articles/322823/")
def rename_before_the_flush(self: FileDisk, path: str, data: bytes, *, durably: bool) -> None:
    """A new checkpoint replaces the old one by a rename, before its content is flushed.

    After a power cut the file is empty, and the old content is lost, too.
    """
    target = self._at(path)
    temporary = target.with_name(f"{target.name}.tmp")
    temporary.write_bytes(data)
    self._close(path)
    temporary.rename(target)


@_seeds(FileDisk, "_put", "not-recovered", "lost-write")
def write_checkpoints_in_place(self: FileDisk, path: str, data: bytes, *, durably: bool) -> None:
    """A checkpoint is truncated and written in place, instead of replaced by a rename.

    A power cut or kill during the write leaves an incomplete file. A node may lose its vote or `meta.properties`.
    """
    self._close(path)
    self._at(path).write_bytes(data)


@_seeds(LogDirectory, "_identify", "not-recovered")
def write_the_identity_without_a_flush(self: LogDirectory, node_id: int, cluster_id: str | None) -> tuple[str, UUID]:
    """`meta.properties` is written but not flushed.

    If a power cut follows the first start of a node, the node has lost its identity, or does not start again.
    """
    self.disk.replace = self.disk.write  # type: ignore[method-assign]  # without the flushes of `replace`
    try:
        return _identify(self, node_id, cluster_id)
    finally:
        del self.disk.replace


# --- disk errors


@_seeds(FileDisk, "append", "not-recovered", "lost-write", "replicas-differ")
def swallow_a_failed_append(self: FileDisk, path: str, *parts: bytes | bytearray | memoryview) -> None:
    """An error of a write is ignored.

    The batch is acknowledged, but is not in the file. The next batch is written in its place.
    """
    try:
        _append(self, path, *parts)
    except OSError:
        return


@_seeds(FileDisk, "flush", "lost-write", "not-recovered", source="https://wiki.postgresql.org/wiki/Fsync_Errors")
def swallow_a_failed_flush(self: FileDisk, *paths: str) -> None:
    """An error of a flush is ignored, as if the next flush would write the same data.

    Batches that are only in the cache are acknowledged, and a power cut loses them.
    """
    try:
        _flush(self, *paths)
    except OSError:
        return


# --- descriptors and positions


@_seeds(FileDisk, "_descriptor", "node-ended", "not-recovered", "lost-write", "replicas-differ")
def write_where_the_descriptor_stands(self: FileDisk, path: str, flags: int = 0) -> int:
    """A file is opened without O_APPEND, so writes begin at the file position, which is 0 after a restart.

    New records overwrite the first records of the log.
    """
    descriptor = self._descriptors.get(path)
    if descriptor is None:
        descriptor = self._descriptors[path] = os.open(self._at(path), os.O_RDWR | os.O_CLOEXEC | flags, _MODE)
    return descriptor


@_seeds(FileDisk, "delete_directory", "node-ended", "replicas-differ", "lost-write", "not-recovered")
def keep_deleted_logs_open(self: FileDisk, path: str) -> None:
    """The files of a removed replica are deleted, but their descriptors stay open.

    If the replica is assigned to the node again, the node writes its records to the deleted files.
    """
    for file in self._at(path).iterdir():
        file.unlink()
    self._at(path).rmdir()


@_seeds(FileDisk, "truncate", "lost-write", "replicas-differ", "not-recovered")
def pass_over_truncation(self: FileDisk, path: str, size: int) -> None:
    """A truncation changes only the log's state in memory, and not the file.

    A deposed leader keeps the records that it should have removed, serves them, and appends new records after them.
    """


class _BufferingDisk(FileDisk):
    """Disk that buffers appends until the file is read or flushed."""

    def __init__(self, root: Path, open_files_max: int) -> None:
        super().__init__(root, open_files_max)
        self._buffered: dict[str, list[bytes]] = {}

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        if not any(parts):
            super().append(path)  # creates the file
        self._buffered.setdefault(path, []).append(b"".join(parts))

    def _descriptor(self, path: str, flags: int = 0) -> int:
        if buffered := self._buffered.pop(path, []):
            super().append(path, *buffered)
        return super()._descriptor(path, flags)


@_seeds(log_directory, "FileDisk", "lost-write", "not-recovered")
def append_to_a_buffered_stream(root: Path, open_files_max: int = OPEN_FILES_MAX) -> FileDisk:
    """Appends are buffered in the process until the file is read or flushed.

    SIGKILL is enough to lose acknowledged records: on all replicas, if all nodes are killed.
    """
    return _BufferingDisk(root, open_files_max)


# --- starting


@_seeds(node, "take_clean_shutdown", "not-recovered", "lost-write", "replicas-differ", source="KAFKA-10471")
def keep_the_marker_of_a_clean_stop(disk: Disk) -> int | None:
    """The file that marks a clean shutdown is not removed when a node starts.

    After a crash the file still exists, so the node takes incomplete logs for complete, and does not recover them.
    """
    epoch = take_clean_shutdown(disk)
    if epoch is not None:
        write_clean_shutdown(disk, epoch)
    return epoch
