"""A disk behind a page cache, which fails as told.

At a power cut (`cut_power`) what was not flushed is lost, wholly or in part:
- A file keeps what it held at its last flush, and any number of the bytes appended since; the last sector that made it
  may be torn.
- A file that `write` gave a new content has that, a part of it, or what it had before.
- A file that was cut short without a flush may have its old end again.
- A file that was made or deleted, without a flush of its directory, may be gone or there again.
- What `replace` wrote is there.

Errors are injected by `failing`: the next operations of those kinds on matching files raise `OSError`. A flush may take
time (`flush_ms`), which the machine spends: `take_delay_ms`.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from reference_broker.core.disk import MemoryDisk

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Failure:
    """Operations that fail from now on.

    :param operation: `append`, `flush`, `read`, `replace`, `truncate`, … or empty for every one.
    :param path_part: only where the path has this in it.
    :param code: `errno.EIO`, `errno.ENOSPC`.
    """

    code: int = errno.EIO
    operation: str = ""
    path_part: str = ""


class SimulatedDisk(MemoryDisk):
    """One machine's log directory.

    :ivar failures: in force until they are taken out.
    :ivar flush_ms: what one flush takes.
    :ivar free_bytes: what may still be written; null: without end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Failure] = []
        self.flush_ms = 0
        self.free_bytes: int | None = None
        self.crashes_after: int | None = None
        """Changes until the power goes, in the middle of whatever is under way; null: it stays."""
        self.crashed: Callable[[], None] | None = None
        self._delay_ms = 0
        self._durable: dict[str, bytes] = {}
        self._dirty: set[str] = set()
        self._named: set[str] = set()

    def take_delay_ms(self) -> int:
        """The time that flushes have taken since the last time."""
        delay_ms, self._delay_ms = self._delay_ms, 0
        return delay_ms

    def _before(self, operation: str, path: str, size_bytes: int = 0) -> None:
        if self.crashes_after is not None:
            if self.crashes_after == 0:
                raise PowerFailureError(errno.EIO, "no power", path)
            self.crashes_after -= 1
        for failure in self.failures:
            if failure.operation in ("", operation) and failure.path_part in path:
                raise OSError(failure.code, "injected", path)
        if size_bytes and self.free_bytes is not None:
            if size_bytes > self.free_bytes:
                raise OSError(errno.ENOSPC, "injected", path)
            self.free_bytes -= size_bytes

    def read(self, path: str, position: int, length: int) -> bytes:
        """Bytes from a position."""
        if self.failures:
            self._before("read", path)
        return super().read(path, position, length)

    def append(self, path: str, *parts: bytes | bytearray | memoryview) -> None:
        """Write at the end of a file."""
        self._before("append", path, sum(map(len, parts)))
        super().append(path, *parts)
        self._dirty.add(path)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file down to a size."""
        self._before("truncate", path)
        super().truncate(path, size)
        self._dirty.add(path)

    def replace(self, path: str, data: bytes) -> None:
        """Give a file new content, durably."""
        self._before("replace", path, len(data))
        super().replace(path, data)
        self._durable[path] = bytes(data)
        self._named.add(path)
        self._dirty.discard(path)
        self._delay_ms += self.flush_ms

    def write(self, path: str, data: bytes) -> None:
        """Give a file new content."""
        self._before("write", path, len(data))
        MemoryDisk.replace(self, path, data)
        self._dirty.add(path)

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._before("delete", path)
        super().delete(path)

    def flush(self, *paths: str) -> None:
        """Make files durable."""
        super().flush(*paths)
        for path in paths:
            self._before("flush", path)
            if path in self._dirty:
                self._durable[path] = bytes(self.files[path])
                self._dirty.discard(path)
        self._delay_ms += self.flush_ms

    def flush_directory(self, *paths: str) -> None:
        """Make names durable."""
        for path in paths:
            self._before("flush_directory", path)
            prefix = f"{path}/"
            self._named = {name for name in self._named if not name.startswith(prefix)}
            self._named |= {name for name in self.files if name.startswith(prefix)}
            self._durable = {name: data for name, data in self._durable.items() if name in self._named}
        self._delay_ms += self.flush_ms

    def cut_power(self, random: Random) -> int:
        """Come back with what is left; how many bytes that were written are not."""
        before = sum(map(len, self.files.values()))
        files = {}
        for path in sorted(self._named | self.files.keys()):
            is_certain = path in self._named and path in self.files
            if is_certain or random.random() < 0.5:
                files[path] = bytearray(self._surviving(path, random))
        self.files = files
        self._durable = {path: bytes(data) for path, data in files.items()}
        self._named = set(files)
        self._dirty = set()
        self.crashes_after = None
        return before - sum(map(len, files.values()))

    def _surviving(self, path: str, random: Random) -> bytes:
        durable = self._durable.get(path, b"")
        current = bytes(self.files.get(path, durable))
        if path not in self._dirty:
            return durable if path in self._durable else current
        if current.startswith(durable):
            return current[: random.randint(len(durable), len(current))]
        return random.choice((durable, current))


class PowerFailureError(OSError):
    """The power went in the middle of an operation."""
