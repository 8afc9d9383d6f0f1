"""Agreement of the files of a node with its state.

| name              | what must hold                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------------|
| `snapshots-known` | the snapshots beside the metadata log are those that the node has in memory (KIP-630)           |
| `snapshots-kept`  | a leader of the quorum deletes no snapshot, unless `metadata.max.retention.bytes` or `.ms` is   |
|                   | small. A follower may delete a snapshot when it has fetched a newer one                         |
| `snapshots-due`   | a node writes a snapshot when it has applied                                                    |
|                   | `metadata.log.max.record.bytes.between.snapshots` since the last one (`SnapshotGenerator`)      |
| `closed-durably`  | after a clean shutdown all log files are durable, and the clean-shutdown file exists and has    |
|                   | the broker epoch. The file may be missing if the node ended before it had opened all its logs   |
| `cut-durably`     | records that were truncated do not return after a power cut                                     |
| `no-stray-logs`   | a broker that has applied the metadata has only the logs of its replicas and of the quorum.     |
|                   | After a restart it can delete each stray log, even if the checkpoints are lost. It also starts  |
|                   | if directories of logs in the checkpoints are lost                                              |
"""

import json
from typing import Final

from reference_broker.core.broker_lifecycle_manager import UNKNOWN_EPOCH
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
)
from reference_broker.core.node import Node
from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.core.replication.log_manager import LogManager
from reference_broker.core.tracer import LogFullyTruncated
from reference_broker.simulation.disk import SimulatedFile
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_ENOUGH_BYTES, _ENOUGH_MS = 50_000_000, 3_600_000
_PARTITION_METADATA: Final = "partition.metadata"
_CHECKPOINTS: Final = (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE)
_LOG_SUFFIXES: Final = (".log", ".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint")


class FilesInvariants(Observer):
    """Checks of the files of a node, after changes of its state and at its end."""

    def __init__(self) -> None:
        self._snapshots: dict[int, list[OffsetAndEpoch]] = {}
        """By running node: its snapshots at the previous check."""

    def ended(self, watched: Watched) -> None:
        """Record the broker epoch in the clean-shutdown file, and check the files that a clean shutdown leaves."""
        self._snapshots.pop(watched.node_id, None)
        is_marked = watched.disk.exists(CLEAN_SHUTDOWN_FILE)
        may_return = CLEAN_SHUTDOWN_FILE in watched.disk.may_return("")  # after a power cut during the deletion
        watched.stopped_epoch = _marked_epoch(watched) if is_marked else None if may_return else UNKNOWN_EPOCH
        if watched.machine.ended_by == "stop":
            if is_marked:
                _check_durable(watched)
                check_strays_are_found(f"node {watched.node_id}", watched.disk)
            elif watched.node is not None and _has_opened_logs(watched.node):
                raise InvariantViolation("closed-durably", f"node {watched.node_id} has no clean-shutdown file")

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check a truncation."""
        assert replica.partition is not None
        if before.log.removed:
            _check_truncated(watched, replica.partition.log.directory)

    def quorum_changed(self, watched: Watched) -> None:
        """Check the snapshots of the metadata log."""
        assert watched.node is not None
        _check_snapshots(watched, watched.node)
        known, here = self._snapshots.get(watched.node_id, []), watched.quorum.log.snapshots.ids
        if here != known:
            deleted = sorted(set(known) - set(here))
            if deleted and isinstance(watched.quorum.state, Leader) and not _is_short(watched.node):
                raise InvariantViolation("snapshots-kept", f"node {watched.node_id}, the leader, has deleted {deleted}")
            self._snapshots[watched.node_id] = list(here)

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """Check that no snapshot is due."""
        assert watched.node is not None
        applied_bytes = watched.node.metadata.applied_bytes
        if applied_bytes >= watched.node.runtime.configuration.integer(
            "metadata.log.max.record.bytes.between.snapshots"
        ):
            detail = f"node {watched.node_id} has written no snapshot after {applied_bytes} bytes"
            raise InvariantViolation("snapshots-due", detail)

    def metadata_applied(self, watched: Watched) -> None:
        """Check for stray logs."""
        assert watched.node is not None
        if watched.node.broker is not None and watched.node.is_serving:
            _check_strays(watched, watched.node)


def check_full_truncation(watched: Watched, event: LogFullyTruncated) -> None:
    """Check a log after the removal of all its records. `FilesInvariants` checks the removal of batches at the log end.

    :raises InvariantViolation: `cut-durably`.
    """
    _check_truncated(watched, f"{event.topic}-{event.partition}")


def check_strays_are_found(name: str, disk: MemoryDisk) -> None:
    """Delete all logs as stray logs in two copies of a disk: one without checkpoints, and one without directories.

    A broker that is killed may have no checkpoint of a new log, and a disk may lose a directory. In the first copy, all
    logs must be deleted; in the second copy, the deletion must not fail.

    :raises InvariantViolation: `no-stray-logs`.
    """
    owned = [f"{directory}/{_PARTITION_METADATA}" for directory in disk.list("")]
    without_checkpoints, without_directories = MemoryDisk(), MemoryDisk()
    for path in owned:
        if disk.exists(path):
            without_checkpoints.make_directory(path.partition("/")[0])
            without_checkpoints.replace(path, bytes(disk.files[path]))
    for file_name in _CHECKPOINTS:
        if disk.exists(file_name):
            without_directories.replace(file_name, bytes(disk.files[file_name]))
    for copy in (without_checkpoints, without_directories):
        manager = LogManager(copy, clean=True)
        manager.delete_strays(())
        manager.delete_directories(len(owned))
    if kept := [path for path in owned if without_checkpoints.exists(path)]:
        raise InvariantViolation("no-stray-logs", f"{name} does not find {kept} without its checkpoints")


def _check_truncated(watched: Watched, directory: str) -> None:
    names = watched.disk.may_return(directory)
    if segments := [name for name in names if name.endswith(".log")]:
        detail = f"{directory} on node {watched.node_id} was truncated, and a power cut may restore {segments}"
        raise InvariantViolation("cut-durably", detail)


def _check_snapshots(watched: Watched, node: Node) -> None:
    names = node.runtime.disk.list(QUORUM_LOG_DIRECTORY)
    there = sorted(name for name in names if name.endswith(".checkpoint"))
    known = sorted(f"{end:020d}-{epoch:010d}.checkpoint" for end, epoch in node.quorum.log.snapshots.ids)
    if there != known:
        raise InvariantViolation("snapshots-known", f"node {watched.node_id} has {there}, and in memory {known}")


def _is_short(node: Node) -> bool:
    """Whether the retention of the metadata log may delete snapshots. A negative size or time is no limit."""
    retained = node.runtime.configuration.integer
    return (
        0 <= retained("metadata.max.retention.bytes") < _ENOUGH_BYTES
        or 0 <= retained("metadata.max.retention.ms") < _ENOUGH_MS
    )


def _check_durable(watched: Watched) -> None:
    files = watched.disk.files
    for path in files:
        file = files[path]
        if path.endswith(_LOG_SUFFIXES) and isinstance(file, SimulatedFile) and not file.is_durable:
            raise InvariantViolation("closed-durably", f"node {watched.node_id} has ended, and {path} is not durable")


def _has_opened_logs(node: Node) -> bool:
    """Whether the node has opened all of its logs, which a crash of the previous run may have damaged."""
    return node.broker is None or (node.is_serving and not node.broker.replicas.has_unapplied_metadata)


def _marked_epoch(watched: Watched) -> int:
    """Return the broker epoch in the clean-shutdown file (KIP-966).

    If this incarnation was registered, the file must have its broker epoch. Otherwise it may have an earlier epoch.
    """
    epoch = json.loads(bytes(watched.disk.files[CLEAN_SHUTDOWN_FILE]))["brokerEpoch"]
    node = watched.node
    known = None if node is None else node.metadata.image.brokers.get(watched.node_id)
    if node is not None and node.broker is not None and node.is_serving and known is not None:
        is_own = known.incarnation_id == node.runtime.identity.incarnation_id
        if is_own and epoch != known.broker_epoch:
            detail = f"node {watched.node_id} has broker epoch {known.broker_epoch}, its clean-shutdown file {epoch}"
            raise InvariantViolation("closed-durably", detail)
    return int(epoch)


def _check_strays(watched: Watched, node: Node) -> None:
    assert node.broker is not None
    own = {partition.log.directory for partition in node.broker.replicas} | {QUORUM_LOG_DIRECTORY}
    for name in node.runtime.disk.list(""):
        if name not in own and node.runtime.disk.exists(f"{name}/{_PARTITION_METADATA}"):
            raise InvariantViolation(
                "no-stray-logs", f"node {watched.node_id} has no replica {name}, and keeps its log"
            )
