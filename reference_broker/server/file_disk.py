"""Real files behind the core's `Disk` port: the only place where the broker writes to a file system.

Rules of this file:
- Descriptors stay open, since every request touches a log; the least recently used one is closed beyond a bound, which
  keeps a broker with thousands of segments within its limit of open files.
- `replace` is durable as POSIX has it: a temporary file, fsync, rename, fsync of the directory.
- Many files are flushed side by side: a journal that commits for one of them commits for all.
- A path never leaves the log directory.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OPEN_FILES_MAX = 512
_FLUSHED_AT_ONCE_MAX = 16
_MODE = 0o644
_DOOMED = ".deleted"


class FileDisk:
    """One log directory in the file system. Every failure is an `OSError`."""

    def __init__(self, root: Path, open_files_max: int = OPEN_FILES_MAX) -> None:
        self._root = root
        self._open_files_max = open_files_max
        self._descriptors: OrderedDict[str, int] = OrderedDict()

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return self._at(path).exists()

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; the log directory itself is the empty string."""
        return sorted(entry.name for entry in self._at(directory).iterdir())

    def size(self, path: str) -> int:
        """Size of a file in bytes."""
        return self._at(path).stat().st_size

    def read(self, path: str, position: int, length: int) -> bytes:
        """Bytes from a position; fewer than asked for only where the file ends."""
        descriptor = self._descriptor(path)
        data = os.pread(descriptor, length, position)
        while 0 < len(data) < length:
            more = os.pread(descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Write at the end of a file, which is made if need be. What a failed write left there is cut off again."""
        descriptor = self._descriptor(path, os.O_CREAT)
        size_bytes = sum(map(len, parts))
        written = os.writev(descriptor, parts) if size_bytes else 0
        if written < size_bytes:
            self._write_rest(descriptor, memoryview(b"".join(parts))[written:], written)

    def _write_rest(self, descriptor: int, rest: memoryview, written: int) -> None:
        start = os.fstat(descriptor).st_size - written
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError:
            os.ftruncate(descriptor, start)
            raise

    def truncate(self, path: str, size: int) -> None:
        """Cut a file down to a size."""
        os.ftruncate(self._descriptor(path), size)

    def replace(self, path: str, data: bytes) -> None:
        """Give a file new content, atomically and durably."""
        self._put(path, data, durably=True)
        self.flush_directory(path.rpartition("/")[0])

    def write(self, path: str, data: bytes) -> None:
        """Give a file new content, atomically."""
        self._put(path, data, durably=False)

    def _put(self, path: str, data: bytes, *, durably: bool) -> None:
        target = self._at(path)
        temporary = target.with_name(f"{target.name}.tmp")
        with open(temporary, "wb") as file:
            file.write(data)
            if durably:
                file.flush()
                os.fsync(file.fileno())
        self._close(path)
        temporary.rename(target)

    def flush(self, *paths: str) -> None:
        """Make the content of files durable."""
        if len(paths) == 1:
            os.fsync(self._descriptor(paths[0]))
        else:
            _side_by_side(_flush, [self._at(path) for path in paths])

    def flush_directory(self, *paths: str) -> None:
        """Make the names in directories durable."""
        _side_by_side(_flush, [self._at(path) for path in paths])

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._close(path)
        self._at(path).unlink()

    def make_directory(self, path: str) -> None:
        """Make a directory; nothing happens where it is there."""
        self._at(path).mkdir(exist_ok=True)

    def delete_directory(self, path: str) -> None:
        """Remove a directory with all it holds. Renamed first, so that a crash leaves a name that is no partition's.

        One name for all: what a crash left under it goes too, and a topic's longest name has no room for a suffix.
        """
        for name in [name for name in self._descriptors if name.startswith(f"{path}/")]:
            self._close(name)
        doomed = self._at(_DOOMED)
        shutil.rmtree(doomed, ignore_errors=True)
        shutil.rmtree(self._at(path).rename(doomed))

    def close(self) -> None:
        """Close every descriptor."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def _at(self, path: str) -> Path:
        assert not path.startswith("/"), path
        assert ".." not in path.split("/"), path
        return self._root / path

    def _descriptor(self, path: str, flags: int = 0) -> int:
        descriptor = self._descriptors.get(path)
        if descriptor is not None:
            self._descriptors.move_to_end(path)
            return descriptor
        descriptor = os.open(self._at(path), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, _MODE)
        self._descriptors[path] = descriptor
        if len(self._descriptors) > self._open_files_max:
            os.close(self._descriptors.popitem(last=False)[1])
        return descriptor

    def _close(self, path: str) -> None:
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


def _side_by_side(action: Callable[[Path], None], paths: Sequence[Path]) -> None:
    if len(paths) == 1:
        action(paths[0])
    elif paths:
        with ThreadPoolExecutor(min(len(paths), _FLUSHED_AT_ONCE_MAX)) as threads:
            list(threads.map(action, paths))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
