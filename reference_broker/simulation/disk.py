"""A disk behind a page cache, with faults.

At a power cut (`cut_power`) unflushed data are lost, completely or in part:
- A file keeps the content of its last flush and a prefix of the bytes that were appended since. One complete sector of
  this prefix may be zeros, because a file system writes sectors in any order.
- A file that was rewritten by `write` has its new content, only the first part of it, or its old content.
- A file that was truncated without a flush may have its old end again.
- A file that was created without a flush of its directory may be missing. A file that was deleted without a flush of
  its directory may be restored.
- A directory that was created may be missing, unless it or the log directory was flushed since, or `replace` wrote a
  file in it. A directory that was deleted may be restored, unless the log directory was flushed since.
- Content written by `replace` is kept.

The power may also be cut during an operation (`crashes_after`). The operation is then performed, but not durably, and
raises `PowerFailureError`.

An operation raises `OSError` if it matches one of the active `failures`, or if it writes more bytes than are free
(`free_bytes`). A flush may take time (`flush_ms`); the machine then waits (`take_delay_ms`).

Implementation: a `SimulatedFile` is an inode. Its durable content is the first `flushed_bytes` of its current content,
followed by `old_end`. There are two tables from names to inodes: the current one, and the durable one. The tables share
the inodes, so that the cost of an operation does not depend on the size of the file.
"""

import errno
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from random import Random

from reference_broker.core.disk import FileTable, MemoryDisk

SECTOR_BYTES = 512
_HOLE_ODDS = 4
"""A file with unflushed sectors gets a hole with a probability of 1 in this number."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Operations that fail.

    :param code: `errno.EIO` or `errno.ENOSPC`.
    :param operation: `append`, `flush`, `read`, `replace`, `truncate`, …; empty for every operation.
    :param path_part: only operations on paths that contain this text fail.
    """

    code: int = errno.EIO
    operation: str = ""
    path_part: str = ""


class PowerFailureError(OSError):
    """Power cut during an operation."""


class SimulatedFile(bytearray):
    """A file: its current content, and its durable content.

    :ivar flushed_bytes: number of bytes at the start of the current content that are durable.
    :ivar old_end: the durable bytes that a truncation has removed from the current content without a flush.
    """

    __slots__ = ("flushed_bytes", "old_end")

    def __init__(self, content: bytes | bytearray = b"", *, is_durable: bool = False) -> None:
        super().__init__(content)
        self.flushed_bytes = len(content) if is_durable else 0
        self.old_end = b""

    @property
    def is_durable(self) -> bool:
        """Whether the whole file is durable."""
        return self.flushed_bytes == len(self) and not self.old_end

    def flush(self) -> None:
        """Make the whole file durable."""
        self.flushed_bytes, self.old_end = len(self), b""

    def truncate(self, size: int) -> None:
        """Truncate the file."""
        if size < self.flushed_bytes:
            self.old_end = bytes(memoryview(self)[size : self.flushed_bytes]) + self.old_end
            self.flushed_bytes = size
        del self[size:]

    def surviving(self, random: Random) -> bytes:
        """Return a content that the file may have after a power cut, chosen by `random`."""
        if self.is_durable or (self.old_end and random.random() < 0.5):  # the power cut reverts the truncation
            return bytes(memoryview(self)[: self.flushed_bytes]) + self.old_end
        kept = self[: random.randint(self.flushed_bytes, len(self))]
        sectors = range(-(-self.flushed_bytes // SECTOR_BYTES), len(kept) // SECTOR_BYTES)
        if sectors and random.randrange(_HOLE_ODDS) == 0:
            start = random.choice(sectors) * SECTOR_BYTES
            kept[start : start + SECTOR_BYTES] = bytes(SECTOR_BYTES)
        return bytes(kept)


class SimulatedDisk(MemoryDisk):
    """One machine's log directory.

    :ivar failures: each one is active until it is removed from the list.
    :ivar flush_ms: duration of a flush.
    :ivar free_bytes: number of bytes that may still be written; None for no limit.
    :ivar crashes_after: number of changes and flushes before the one during which the power is cut; None for no power
        cut.
    :ivar changed: paths of files and directories that were changed or flushed, in order. An observer may remove them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Failure] = []
        self.flush_ms = 0
        self.free_bytes: int | None = None
        self.crashes_after: int | None = None
        self.changed: dict[str, None] = {}
        self._delay_ms = 0
        self._durable: dict[str, dict[str, SimulatedFile]] = {"": {}}
        """Durable files by directory and name. A directory without an entry may be missing after a power cut."""
        self._files = _Inodes(self._durable, {})

    @property
    def files(self) -> MutableMapping[str, bytearray]:
        """Content by path. A change of a file here is damage at rest; a file added here is durable."""
        return self._files

    @files.setter
    def files(self, files: Mapping[str, bytearray]) -> None:
        self._durable.clear()
        self._durable.update({directory: {} for directory in self._directories})
        self._files = _Inodes(self._durable, files)

    def take_delay_ms(self) -> int:
        """Return the duration of all flushes since the last call."""
        delay_ms, self._delay_ms = self._delay_ms, 0
        return delay_ms

    # Faults

    def _before(self, operation: str, path: str, size_bytes: int = 0) -> None:
        """Raise `OSError` if an operation has to fail. Otherwise subtract the bytes that it writes from the free bytes.

        Called before the operation changes anything.
        """
        for failure in self.failures:
            if failure.operation in ("", operation) and failure.path_part in path:
                raise OSError(failure.code, "injected", path)
        if self.free_bytes is not None:
            if size_bytes > self.free_bytes:
                raise OSError(errno.ENOSPC, "injected", path)
            self.free_bytes -= size_bytes

    def _give_back(self, size_bytes: int) -> None:
        if self.free_bytes is not None:
            self.free_bytes += size_bytes

    def _count(self, path: str) -> None:
        """Record a change or a flush. Raises `PowerFailureError` if the power is cut during the operation."""
        self.changed[path] = None
        if self.crashes_after is not None:
            if self.crashes_after == 0:
                raise PowerFailureError(errno.EIO, "no power", path)
            self.crashes_after -= 1

    # Operations of the port `Disk`

    def read(self, path: str, position: int, length: int) -> bytes:
        """Return bytes from a position."""
        if self.failures:
            self._before("read", path)
        return super().read(path, position, length)

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Write at the end of a file."""
        self._before("append", path, sum(map(len, parts)))
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = SimulatedFile()
        for part in parts:
            file += part
        self._count(path)

    def truncate(self, path: str, size: int) -> None:
        """Truncate a file to a size."""
        self._before("truncate", path)
        file = self._file(path)
        self._give_back(max(len(file) - size, 0))
        file.truncate(size)
        self._count(path)

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of a file, durably."""
        self._before("replace", path, len(data))
        file = self._put(path, data, is_durable=True)
        self._count(path)
        directory, _, name = path.rpartition("/")
        self._durable.setdefault(directory, {})[name] = file
        self._delay_ms += self.flush_ms

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file, not durably."""
        self._before("write", path, len(data))
        self._put(path, data, is_durable=False)
        self._count(path)

    def _put(self, path: str, data: bytes, *, is_durable: bool) -> SimulatedFile:
        if self.free_bytes is not None:
            self._give_back(len(self._files.get(path, b"")))
        file = self._files[path] = SimulatedFile(data, is_durable=is_durable)
        return file

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._before("delete", path)
        self._give_back(len(self._file(path)))
        super().delete(path)
        self._count(path)

    def flush(self, *paths: str) -> None:
        """Make files durable."""
        for path in paths:
            self._before("flush", path)
            file = self._file(path)
            self._count(path)
            file.flush()
        self._delay_ms += self.flush_ms

    def flush_directory(self, *paths: str) -> None:
        """Make the names in directories durable. The empty path is the log directory, which contains the others."""
        for path in paths:
            self._before("flush_directory", path)
            self._count(path)
            inside = self._files.by_directory.get(path, {})
            self._durable[path] = {name: file for name, file in inside.items() if isinstance(file, SimulatedFile)}
            if not path:
                self._flush_directories()
        self._delay_ms += self.flush_ms

    def _flush_directories(self) -> None:
        """Make the creation and deletion of all directories durable. Directories are not nested."""
        for directory in self._durable.keys() - self._directories.keys():
            del self._durable[directory]
        for directory in self._directories:
            self._durable.setdefault(directory, {})

    def make_directory(self, path: str) -> None:
        """Create a directory."""
        self._before("make_directory", path)
        if path not in self._directories:
            self._durable.pop(path, None)  # a deleted directory of that name is not restored
        super().make_directory(path)
        self._count(path)

    def delete_directory(self, path: str) -> None:
        """Remove a directory with its files."""
        self._before("delete_directory", path)
        self._give_back(sum(map(len, self._files.by_directory.get(path, {}).values())))
        super().delete_directory(path)
        self._count(path)

    def _file(self, path: str) -> SimulatedFile:
        file = super()._file(path)
        assert isinstance(file, SimulatedFile)
        return file

    # Power

    def cut_power(self, random: Random) -> int:
        """Keep what survives a power cut, and return the number of bytes that the files lose.

        The number is negative if restored files have more bytes than the other files lose.
        """
        before = sum(map(len, self._files.values()))
        files = {}
        for directory in sorted(self._durable.keys() | self._files.by_directory.keys() | self._directories.keys()):
            is_there = not directory or directory in self._directories or directory in self._files.by_directory
            if is_there != (directory in self._durable) and random.random() < 0.5:
                self._drop_directory(directory)
                continue
            if not is_there:
                super().make_directory(directory)
            for name, file in self._surviving_files(directory, random).items():
                files[f"{directory}/{name}" if directory else name] = bytearray(file.surviving(random))
        self.files = files
        self.crashes_after = None
        self._delay_ms = 0
        return before - sum(map(len, files.values()))

    def _drop_directory(self, directory: str) -> None:
        if directory in self._directories:
            super().delete_directory(directory)

    def _surviving_files(self, directory: str, random: Random) -> dict[str, SimulatedFile]:
        """Return files by name. If the durable and the current file of a name differ, choose one of them at random."""
        durable, current = self._durable.get(directory, {}), self._files.by_directory.get(directory, {})
        found = {}
        for name in sorted(durable.keys() | current.keys()):
            choice = durable.get(name), current.get(name)
            file = choice[0] if choice[0] is choice[1] else random.choice(choice)
            if isinstance(file, SimulatedFile):
                found[name] = file
        return found

    def durable_bytes(self, path: str) -> int:
        """Return the number of bytes at the start of a file that survive any power cut; 0 if its name may be lost."""
        directory, _, name = path.rpartition("/")
        file = self._files.get(path)
        is_named = isinstance(file, SimulatedFile) and self._durable.get(directory, {}).get(name) is file
        return file.flushed_bytes if is_named and isinstance(file, SimulatedFile) else 0

    def may_return(self, directory: str) -> list[str]:
        """Return the names of the files in a directory that a power cut may restore to an earlier content."""
        durable, current = self._durable.get(directory, {}), self._files.by_directory.get(directory, {})
        return [name for name, file in durable.items() if file.old_end or current.get(name) is not file]

    # Damage at rest

    def flip_bit(self, path: str, random: Random) -> None:
        """Change one bit at a random position. An empty file stays as it is."""
        file = self._file(path)
        if file:
            file[random.randrange(len(file))] ^= 1 << random.randrange(8)

    def cut_short(self, path: str, random: Random) -> None:
        """Truncate a file to a random number of bytes, durably. An empty file stays as it is."""
        file = self._file(path)
        if file:
            self._files[path] = bytearray(file[: random.randrange(len(file))])

    def lose(self, path: str) -> None:
        """Delete a file durably."""
        directory, _, name = path.rpartition("/")
        del self._files[path]
        self._durable.get(directory, {}).pop(name, None)


class _Inodes(FileTable):
    """Files by path. When a `bytearray` is stored, it is converted to a durable `SimulatedFile`, unless it is one."""

    def __init__(self, durable: dict[str, dict[str, SimulatedFile]], files: Mapping[str, bytearray]) -> None:
        self._durable = durable
        super().__init__(files)

    def __setitem__(self, path: str, data: bytearray) -> None:
        if not isinstance(data, SimulatedFile):
            directory, _, name = path.rpartition("/")
            data = self._durable.setdefault(directory, {})[name] = SimulatedFile(data, is_durable=True)
        super().__setitem__(path, data)
