"""The port through which the core reaches its files: synchronous, small, exact to the byte.

The server implements it with real files, the simulator with a disk that fails as told, tests with memory. Rules that
an implementation keeps:
- Paths are relative to the log directory, with `/`; a directory is named without one at its end.
- Nothing is durable before `flush` (content) and `flush_directory` (names), but for `replace`. To flush many files at
  once costs little more than to flush one.
- A failure is an `OSError` and means that the log directory is lost: the core never tries to repair it.
"""

from typing import Protocol


class Disk(Protocol):
    """One log directory."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        ...

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; the log directory itself is the empty string."""
        ...

    def size(self, path: str) -> int:
        """Size of a file in bytes."""
        ...

    def read(self, path: str, position: int, length: int) -> bytes:
        """Bytes from a position; fewer than asked for where the file ends."""
        ...

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Write parts, one behind the other, at the end of a file, which is made if need be."""
        ...

    def truncate(self, path: str, size: int) -> None:
        """Cut a file down to a size."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Give a file new content, atomically and durably."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Give a file new content, atomically; durable with the next flush of it and of its directory."""
        ...

    def flush(self, *paths: str) -> None:
        """Make the content of files durable (fsync)."""
        ...

    def flush_directory(self, *paths: str) -> None:
        """Make the names in directories durable."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory; nothing happens where it is there."""
        ...

    def delete_directory(self, path: str) -> None:
        """Remove a directory with all it holds."""
        ...


class MemoryDisk:
    """A disk in memory, whose writes are all durable at once."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self._directories: set[str] = {""}

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return path in self.files or path in self._directories

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted."""
        prefix = f"{directory}/" if directory else ""
        paths = [*self.files, *self._directories]
        return sorted({path.removeprefix(prefix) for path in paths if _is_direct_child(path, prefix)})

    def size(self, path: str) -> int:
        """Size of a file in bytes."""
        return len(self._file(path))

    def read(self, path: str, position: int, length: int) -> bytes:
        """Bytes from a position."""
        return bytes(memoryview(self._file(path))[position : position + length])

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Write at the end of a file."""
        file = self.files.setdefault(path, bytearray())
        for part in parts:
            file += part

    def truncate(self, path: str, size: int) -> None:
        """Cut a file down to a size."""
        del self._file(path)[size:]

    def replace(self, path: str, data: bytes) -> None:
        """Give a file new content."""
        self.files[path] = bytearray(data)

    def write(self, path: str, data: bytes) -> None:
        """Give a file new content."""
        self.replace(path, data)

    def flush(self, *paths: str) -> None:
        """Nothing to do but to miss a file that is not there."""
        for path in paths:
            self._file(path)

    def flush_directory(self, *paths: str) -> None:
        """Nothing to do."""

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._file(path)
        del self.files[path]

    def make_directory(self, path: str) -> None:
        """Make a directory."""
        self._directories.add(path)

    def delete_directory(self, path: str) -> None:
        """Remove a directory with all it holds."""
        self._directories = {name for name in self._directories if name != path and not name.startswith(f"{path}/")}
        self.files = {name: data for name, data in self.files.items() if not name.startswith(f"{path}/")}

    def _file(self, path: str) -> bytearray:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


def _is_direct_child(path: str, prefix: str) -> bool:
    name = path.removeprefix(prefix)
    return path.startswith(prefix) and bool(name) and "/" not in name
