"""The core's port for file access, and an implementation in memory for tests.

The server implements the port with real files, the simulation with a disk that injects faults.

Rules of an implementation:
- Paths are relative to the log directory. Their parts are separated by `/`; a directory's path does not end with `/`.
- `flush` makes the content of files durable, and `flush_directory` their names. The result of `replace` is durable on
  return. To flush many files in one call costs little more than to flush one.
- A failure is an `OSError`, and means that the log directory has failed: the core never tries to repair it.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Protocol


class Disk(Protocol):
    """Access to the files of one log directory."""

    @property
    def opened_per_event(self) -> int:
        """Maximum number of new logs that one event creates. It is limited because each log needs several flushes."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        ...

    def list(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; an empty path is the log directory itself."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def read(self, path: str, position: int, length: int) -> bytes:
        """Return bytes from a position; fewer than `length` at the end of the file."""
        ...

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Append parts to a file, which is created if necessary."""
        ...

    def truncate(self, path: str, size: int) -> None:
        """Truncate a file to a size."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of a file, atomically and durably."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file, atomically; it is durable once the file and its directory are flushed."""
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
        """Create a directory, unless it exists."""
        ...

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""
        ...


class FileTable(MutableMapping[str, bytearray]):
    """Files by path. They are grouped by directory, so that it is cheap to list one of thousands of directories."""

    def __init__(self, files: Mapping[str, bytearray]) -> None:
        self.by_directory: dict[str, dict[str, bytearray]] = {}
        self.update(files)

    def __getitem__(self, path: str) -> bytearray:
        directory, _, name = path.rpartition("/")
        return self.by_directory[directory][name]

    def __setitem__(self, path: str, data: bytearray) -> None:
        directory, _, name = path.rpartition("/")
        self.by_directory.setdefault(directory, {})[name] = data

    def __delitem__(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        del self.by_directory[directory][name]

    def __iter__(self) -> Iterator[str]:
        for directory, files in self.by_directory.items():
            for name in files:
                yield f"{directory}/{name}" if directory else name

    def __len__(self) -> int:
        return sum(map(len, self.by_directory.values()))


class MemoryDisk:
    """A disk in memory, whose writes are durable at once. Tests may read and damage `files`."""

    def __init__(self) -> None:
        self._files = FileTable({})
        self._directories: dict[str, set[str]] = {"": set()}
        """Names of the subdirectories by path."""

    @property
    def opened_per_event(self) -> int:
        """Maximum number of new logs that one event creates."""
        return 8

    @property
    def files(self) -> MutableMapping[str, bytearray]:
        """Content by path."""
        return self._files

    @files.setter
    def files(self, files: Mapping[str, bytearray]) -> None:
        self._files = FileTable(files)

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        return path in self._files or path in self._directories

    def list(self, directory: str) -> list[str]:
        """Return the sorted names in a directory."""
        return sorted({*self._files.by_directory.get(directory, ()), *self._directories.get(directory, ())})

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return len(self._file(path))

    def read(self, path: str, position: int, length: int) -> bytes:
        """Return bytes from a position."""
        return bytes(memoryview(self._file(path))[position : position + length])

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Write at the end of a file."""
        file = self._files.setdefault(path, bytearray())
        for part in parts:
            file += part

    def truncate(self, path: str, size: int) -> None:
        """Truncate a file to a size."""
        del self._file(path)[size:]

    def replace(self, path: str, data: bytes) -> None:
        """Replace the content of a file."""
        self._files[path] = bytearray(data)

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file."""
        self.replace(path, data)

    def flush(self, *paths: str) -> None:
        """Raise `FileNotFoundError` if a file is missing; all content is durable already."""
        for path in paths:
            self._file(path)

    def flush_directory(self, *paths: str) -> None:
        """Do nothing: names are durable already."""

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._file(path)
        del self._files[path]

    def make_directory(self, path: str) -> None:
        """Create a directory."""
        self._directories.setdefault(path, set())
        parent, _, name = path.rpartition("/")
        self._directories.setdefault(parent, set()).add(name)

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""
        if path not in self._directories:
            raise FileNotFoundError(path)
        for inside in self._directories.pop(path):
            self.delete_directory(f"{path}/{inside}")
        self._files.by_directory.pop(path, None)
        parent, _, name = path.rpartition("/")
        self._directories.get(parent, set()).discard(name)

    def _file(self, path: str) -> bytearray:
        file = self._files.get(path)
        if file is None:
            raise FileNotFoundError(path)
        return file
