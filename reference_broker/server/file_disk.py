"""Implementation of the core's `Disk` port on a file system. No other module of the broker writes files.

Rules of this file:
- Descriptors stay open, because every request touches a log. If there are more than `open_files_max`, the least
  recently used descriptor is closed. So a broker with thousands of segments does not exceed the system's limit of open
  files.
- `replace` is durable by POSIX rules: write a temporary file, fsync it, rename it, fsync the directory.
- Several files are flushed in parallel, so that one commit of the file system's journal serves them all.
- Paths are relative to the log directory and cannot leave it.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OPEN_FILES_MAX = 512
_PARALLEL_FLUSHES_MAX = 16
_PARTS_PER_WRITE_MAX = os.sysconf("SC_IOV_MAX")
_MODE = 0o644
_DELETED = ".deleted"


class FileDisk:
    """One log directory. Failures are raised as `OSError`."""

    def __init__(self, root: Path, open_files_max: int = OPEN_FILES_MAX) -> None:
        self._root = root
        self._open_files_max = open_files_max
        self._descriptors: OrderedDict[str, int] = OrderedDict()

    @property
    def opened_per_event(self) -> int:
        """Maximum number of new logs that one event creates, so that other requests do not wait long.

        If three nodes create logs at the same time, each log takes more than 10 ms.
        """
        return 2

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        return self._at(path).exists()

    def list(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; an empty string means the log directory."""
        return sorted(entry.name for entry in self._at(directory).iterdir())

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self._at(path).stat().st_size

    def read(self, path: str, position: int, length: int) -> bytes:
        """Return `length` bytes from a position, or fewer at the end of the file."""
        descriptor = self._descriptor(path)
        data = os.pread(descriptor, length, position)
        while 0 < len(data) < length:
            more = os.pread(descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Append to a file; create it if it does not exist. If only a part can be written, that part is removed."""
        descriptor = self._descriptor(path, os.O_CREAT)
        size_bytes = sum(map(len, parts))
        written = os.writev(descriptor, parts[:_PARTS_PER_WRITE_MAX]) if size_bytes else 0
        if written < size_bytes:
            self._write_rest(descriptor, memoryview(b"".join(parts))[written:], written)

    def _write_rest(self, descriptor: int, rest: memoryview, written: int) -> None:
        size_before = os.fstat(descriptor).st_size - written
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError:
            os.ftruncate(descriptor, size_before)
            raise

    def truncate(self, path: str, size: int) -> None:
        """Truncate a file to a size in bytes."""
        os.ftruncate(self._descriptor(path), size)

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of a file, atomically and durably."""
        self._put(path, data, durably=True)
        self.flush_directory(path.rpartition("/")[0])

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file, atomically."""
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
        """Flush files to disk."""
        if len(paths) == 1:
            os.fsync(self._descriptor(paths[0]))
        else:
            _in_parallel(_flush, [self._at(path) for path in paths])

    def flush_directory(self, *paths: str) -> None:
        """Flush the entries of directories to disk."""
        _in_parallel(_flush, [self._at(path) for path in paths])

    def delete(self, path: str) -> None:
        """Delete a file."""
        self._close(path)
        self._at(path).unlink()

    def make_directory(self, path: str) -> None:
        """Create a directory if it does not exist."""
        self._at(path).mkdir(exist_ok=True)

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content. It is renamed first, so that a crash leaves no incomplete partition.

        All directories are renamed to the same name, so the next deletion also deletes what a crash has left. The
        directory's name with a suffix may be too long for the file system, because topic names are long.
        """
        for name in [name for name in self._descriptors if name.startswith(f"{path}/")]:
            self._close(name)
        renamed = self._at(_DELETED)
        shutil.rmtree(renamed, ignore_errors=True)
        shutil.rmtree(self._at(path).rename(renamed))

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


def _in_parallel(action: Callable[[Path], None], paths: Sequence[Path]) -> None:
    if len(paths) == 1:
        action(paths[0])
    elif paths:
        with ThreadPoolExecutor(min(len(paths), _PARALLEL_FLUSHES_MAX)) as threads:
            list(threads.map(action, paths))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
