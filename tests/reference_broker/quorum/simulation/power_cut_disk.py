"""A disk whose power can fail: what was not flushed is then lost, wholly or in part, or is there after all.

- A file keeps what it held at its last flush, and any number of the bytes appended since.
- A file that `write` gave a new content has that, a part of it, or what it had before.
- A file that was cut short without a flush may have its old end again.
- A file that was made or deleted, without a flush of its directory, may be gone or there again.
- What `replace` wrote is there.

The power may fail between any two changes: `fails_after` counts down to that moment.
"""

from random import Random

from reference_broker.core.disk import MemoryDisk


class PowerFailureError(OSError):
    pass


class PowerCutDisk(MemoryDisk):
    def __init__(self) -> None:
        super().__init__()
        self.fails_after: int | None = None
        self._durable: dict[str, bytes] = {}
        self._dirty: set[str] = set()
        self._named: set[str] = set()

    def _change(self) -> None:
        if self.fails_after == 0:
            raise PowerFailureError("no power")
        if self.fails_after is not None:
            self.fails_after -= 1

    def append(self, path, *parts):
        self._change()
        super().append(path, *parts)
        self._dirty.add(path)

    def truncate(self, path, size):
        self._change()
        super().truncate(path, size)
        self._dirty.add(path)

    def replace(self, path, data):
        self._change()
        super().replace(path, data)
        self._durable[path] = bytes(data)
        self._named.add(path)
        self._dirty.discard(path)

    def write(self, path, data):
        self._change()
        MemoryDisk.replace(self, path, data)
        self._dirty.add(path)

    def delete(self, path):
        self._change()
        super().delete(path)

    def flush(self, *paths):
        super().flush(*paths)
        for path in paths:
            self._change()
            if path in self._dirty:
                self._durable[path] = bytes(self.files[path])
                self._dirty.discard(path)

    def flush_directory(self, *paths):
        for path in paths:
            self._change()
            prefix = f"{path}/"
            self._named = {name for name in self._named if not name.startswith(prefix)}
            self._named |= {name for name in self.files if name.startswith(prefix)}
            self._durable = {name: data for name, data in self._durable.items() if name in self._named}

    def cut_power(self, random: Random) -> None:
        """Come back with what is left."""
        files = {}
        for path in sorted(self._named | self.files.keys()):
            is_certain = path in self._named and path in self.files
            if is_certain or random.random() < 0.5:
                files[path] = bytearray(self._surviving(path, random))
        self.files = files
        self._durable = {path: bytes(data) for path, data in files.items()}
        self._named = set(files)
        self._dirty = set()

    def _surviving(self, path: str, random: Random) -> bytes:
        durable = self._durable.get(path, b"")
        current = bytes(self.files.get(path, durable))
        if path not in self._dirty:
            return durable if path in self._durable else current
        if current.startswith(durable):
            return current[: random.randint(len(durable), len(current))]
        return random.choice((durable, current))
