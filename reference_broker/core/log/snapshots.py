"""The `.snapshot` files of a log: what its producers had written up to the offset in the name (KIP-98).

Rules of this file:
- One is taken when a segment is rolled and on a clean stop: only the batches behind the last one are read again.
- A damaged one, or one beyond the end of the log, is removed and the one before it serves.
"""

from reference_broker.core.disk import Disk
from reference_broker.core.log.producers import Producers

_SUFFIX = ".snapshot"


class ProducerSnapshots:
    """The snapshots in one directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def offsets(self) -> list[int]:
        """Offsets of the snapshots, ascending."""
        names = self._disk.list(self._directory)
        stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def take(self, producers: Producers, offset: int) -> list[str]:
        """Write down what the producers are at an offset, unless that is known; the path, for the caller to flush."""
        if not offset or offset in self.offsets():
            return []
        self._disk.write(self._path(offset), producers.snapshot())
        return [self._path(offset)]

    def restore(self, producers: Producers, log_end_offset: int) -> int:
        """Put the producers into the state of the latest good snapshot; its offset, 0 where there is none."""
        for offset in reversed(self.offsets()):
            path = self._path(offset)
            if offset <= log_end_offset and producers.load(self._disk.read(path, 0, self._disk.size(path))):
                return offset
            self._disk.delete(path)
        return 0

    def delete_below(self, offset: int) -> None:
        """Remove those that no segment needs any more."""
        for found in self.offsets():
            if found < offset:
                self._disk.delete(self._path(found))

    def delete_above(self, offset: int) -> None:
        """Remove those beyond a truncation."""
        for found in self.offsets():
            if found > offset:
                self._disk.delete(self._path(found))

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{_SUFFIX}"
