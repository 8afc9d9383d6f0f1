"""Copy of a simulated disk in a directory of this machine, for controls that read or change log directories.

The copy is written when a caller requests the directory. If the node is down at that time, the caller may change the
directory. Before the node starts, these changes are applied to the disk: changed files are durable there, and files
deleted from the directory are lost.
"""

import shutil
from pathlib import Path

from linearizability.temporary_folder import TemporaryFolder
from reference_broker.simulation.disk import SimulatedDisk


class DiskCopy:
    """Directory with a copy of one disk.

    :ivar is_open: whether a caller may have changed the directory, so that it must be copied back.
    """

    def __init__(self) -> None:
        self._directory = TemporaryFolder()
        self._shown: dict[str, bytes] = {}
        self.is_open = False

    @property
    def path(self) -> Path:
        """Path of the directory."""
        return self._directory.path

    def show(self, disk: SimulatedDisk) -> None:
        """Update the directory: write what has changed on the disk since the last copy."""
        files = _content(disk)
        directories = _directories(disk)
        for gone in sorted(self._shown.keys() - files.keys()):
            (self.path / gone).unlink(missing_ok=True)
        for inside in sorted(self.path.iterdir()):
            if inside.is_dir() and inside.name not in directories:
                shutil.rmtree(inside)
        for directory in directories:
            (self.path / directory).mkdir(exist_ok=True)
        for path, content in files.items():
            if self._shown.get(path) != content:
                (self.path / path).write_bytes(content)
        self._shown = files

    def copy_back(self, disk: SimulatedDisk) -> None:
        """Update the disk: apply what has changed in the directory since the last copy."""
        there = {str(path.relative_to(self.path)): path for path in sorted(self.path.rglob("*"))}
        for missing in [path for path in sorted(disk.files) if path not in there]:
            disk.lose(missing)
        for directory in [directory for directory in _directories(disk) if directory not in there]:
            disk.delete_directory(directory)
        for name, path in there.items():
            if path.is_dir():
                disk.make_directory(name)
            elif (content := path.read_bytes()) != self._shown.get(name):
                disk.files[name] = bytearray(content)
        self._shown = _content(disk)
        self.is_open = False

    def close(self) -> None:
        """Delete the directory."""
        self._directory.remove()


def _content(disk: SimulatedDisk) -> dict[str, bytes]:
    return {path: bytes(content) for path, content in disk.files.items()}


def _directories(disk: SimulatedDisk) -> list[str]:
    """Return the names of the directories in the log directory; they have no subdirectories."""
    return [name for name in disk.list("") if name not in disk.files]
