"""Damage to the simulated disk of a node that is down. `fixtures.faults.damage` does the same to real disks."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from fixtures.faults.damage import DELETED, GARBAGE, RECOVERY_POINTS, Damage, flipped
from fixtures.targets.target import TargetError
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.disk import SimulatedDisk

_METADATA = "__cluster_metadata-0/"


class SimulatedFiles:
    """`ReplicaFiles` over simulated disks."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._machines = cluster.machines

    def wipe(self, node: int) -> None:
        """Delete every topic of a node, as the function `wipe` does."""
        wipe(self._machines[node].disk)

    def damage(self, node: int, topic: str, what: Damage) -> None:
        """Damage the files of a topic, as the function `damage` does."""
        damage(self._machines[node].disk, topic, what)

    def flip_bit(self, node: int, topic: str, suffix: str, per_mille: int) -> None:
        """Flip a bit in a file of a topic's first partition, as the function `flip_bit` does."""
        flip_bit(self._machines[node].disk, topic, suffix, per_mille)

    def cut_short(self, node: int, topic: str, suffix: str, per_mille: int) -> None:
        """Raise `TargetError`."""
        raise TargetError("the simulation truncates no files at rest")

    def copied(self, node: int, topic: str) -> AbstractContextManager[Callable[[], object]]:
        """Raise `TargetError`."""
        raise TargetError("the simulation copies no files")


def damage(disk: SimulatedDisk, topic: str, what: Damage) -> None:
    """Damage the files of a topic. `Damage.CHECKPOINTS` also deletes the checkpoints of the whole log directory."""
    own = [path for path in sorted(disk.files) if _is_in_topic(path, topic)]
    match what:
        case Damage.REPLICA:
            for path in own:
                disk.lose(path)
            _delete_directories(disk, own)
        case Damage.TORN_TAIL:
            logs = [path for path in own if path.endswith(".log")]
            for directory in sorted({path.rpartition("/")[0] for path in logs}):
                active = max(path for path in logs if path.startswith(f"{directory}/"))
                disk.files[active] = bytearray(disk.files[active] + GARBAGE)
        case _:
            for path in own:
                if path.endswith(DELETED[what]):
                    disk.lose(path)
    if what is Damage.CHECKPOINTS:
        for path in [path for path in sorted(disk.files) if "/" not in path and path.endswith("-checkpoint")]:
            disk.lose(path)


def flip_bit(disk: SimulatedDisk, topic: str, suffix: str, per_mille: int) -> bool:
    """Flip a bit in the last file with this suffix in a topic's first partition, and delete the recovery point.

    Kafka detects a flipped bit only in batches that it reads. Without a recovery point, the node reads every batch at
    its next start. Return false, and change nothing, if there is no such file or all of them are empty.

    :param per_mille: position of the bit in the file, in thousandths of the file's size.
    """
    paths = [path for path in sorted(disk.files) if path.startswith(f"{topic}-0/") and path.endswith(suffix)]
    found = [path for path in paths if disk.files[path]]
    if not found:
        return False
    disk.files[found[-1]] = flipped(disk.files[found[-1]], suffix, per_mille)
    if RECOVERY_POINTS in disk.files:
        disk.lose(RECOVERY_POINTS)
    return True


def wipe(disk: SimulatedDisk) -> None:
    """Delete every topic and all checkpoints, but not the metadata log and `meta.properties`."""
    lost = [path for path in sorted(disk.files) if "/" in path and not path.startswith(_METADATA)]
    checkpoints = [path for path in sorted(disk.files) if path.endswith("-checkpoint") and "/" not in path]
    for path in (*lost, *checkpoints):
        disk.lose(path)
    _delete_directories(disk, lost)


def _delete_directories(disk: SimulatedDisk, paths: list[str]) -> None:
    """Delete the directories of these files. The deletions do not count for a planned power cut (`crashes_after`)."""
    crashes_after, disk.crashes_after = disk.crashes_after, None
    for directory in sorted({path.rpartition("/")[0] for path in paths}):
        disk.delete_directory(directory)
    disk.crashes_after = crashes_after


def _is_in_topic(path: str, topic: str) -> bool:
    """Whether a file is in the directory of one of the topic's partitions."""
    directory, _, _ = path.partition("/")
    return "/" in path and directory.rpartition("-")[0] == topic
