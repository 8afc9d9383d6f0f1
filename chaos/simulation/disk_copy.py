"""Copy of a simulated disk in a directory of this machine. Changes of the directory are copied back.

A copy is written when it is requested. If it was requested while the node was down, changes of the directory are
copied back before the node starts: changed content is durable, and files missing from the directory are lost.
"""

import shutil
from pathlib import Path

from linearizability.temporary_folder import TemporaryFolder
from reference_broker.simulation.disk import SimulatedDisk


class DiskCopy:
    """Directory with a copy of one disk. `is_open`: the directory may have changed and must be copied back."""

    def __init__(self) -> None:
        self._directory = TemporaryFolder()
        self._shown: dict[str, bytes] = {}
        self.is_open = False

    @property
    def path(self) -> Path:
        """Path of the directory."""
        return self._directory.path

    def show(self, disk: SimulatedDisk) -> None:
        """Write the files of the disk that have changed since the last copy."""
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
        """Apply the changes of the directory since the last copy to the disk."""
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
    """Return the names of the directories; the log directory has one level of them."""
    return [name for name in disk.list("") if name not in disk.files]
