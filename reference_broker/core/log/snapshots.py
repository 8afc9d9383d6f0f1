"""Producer snapshots: the files of the producer state.

Follows: org.apache.kafka.storage.internals.log.ProducerStateManager (KIP-98).

Rules of this file:
- A snapshot is taken when a segment is rolled, and on a clean shutdown.
- When a log is loaded or truncated, the producer state is rebuilt from the last snapshot and the batches after it. New
  snapshots are taken at the base offset of each later segment, and at the log end.
- A snapshot that is corrupt or outside the log is deleted, and the previous one is loaded.
- If there is no snapshot after a clean shutdown, all batches are read. Kafka differs: it assumes an upgrade from a
  version without snapshots, and starts with an empty producer state.
"""

from reference_broker.core.disk import Disk
from reference_broker.core.log.producer_state_manager import ProducerStateManager

_SUFFIX = ".snapshot"


class ProducerSnapshots:
    """The snapshots in one directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def offsets(self) -> list[int]:
        """Return the offsets of the snapshots in ascending order."""
        names = self._disk.list(self._directory)
        stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def take(self, producers: ProducerStateManager, offset: int, log_start_offset: int) -> list[str]:
        """Write a snapshot, unless the offset is the log start offset or has a snapshot already.

        Return the paths that the caller must flush: that of the snapshot, or none.
        """
        if offset <= log_start_offset or self._disk.exists(self._path(offset)):
            return []
        self._disk.write(self._path(offset), producers.snapshot())
        return [self._path(offset)]

    def restore(self, producers: ProducerStateManager, log_start_offset: int, log_end_offset: int) -> int:
        """Load the latest valid snapshot and return its offset; if there is none, return the log start offset."""
        for offset in reversed(self.offsets()):
            path = self._path(offset)
            is_inside = log_start_offset < offset <= log_end_offset
            if is_inside and producers.load(self._disk.read(path, 0, self._disk.size(path))):
                return offset
            self._disk.delete(path)
        return log_start_offset

    def delete_below(self, offset: int) -> None:
        """Remove the snapshots below an offset, because their segments are deleted."""
        for found in self.offsets():
            if found < offset:
                self._disk.delete(self._path(found))

    def delete_above(self, offset: int) -> None:
        """Remove the snapshots above the offset to which the log is truncated."""
        for found in self.offsets():
            if found > offset:
                self._disk.delete(self._path(found))

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{_SUFFIX}"
