"""Start offsets of the leader epochs of a log.

Follows: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache (KIP-101, KIP-279, KIP-320).

Replicas compare these offsets to find the point from which their logs diverge.

Rules of this file:
- Epochs and start offsets of the entries increase strictly. An epoch whose leader has not appended a record yet has an
  entry only while it is the latest epoch.
- A new epoch is written to `leader-epoch-checkpoint` before its first record, and becomes durable when the log is
  flushed. Entries lost in a crash are restored from the batches after the recovery point.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from reference_broker.core.disk import Disk
from reference_broker.core.log.checkpoints import LEADER_EPOCH_FILE, read_epochs, write_epochs

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochFileCache:
    """The leader epochs of one log."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{LEADER_EPOCH_FILE}"
        self._entries = read_epochs(disk, self._path)
        self._is_durable = not disk.exists(self._path)  # the last run may have been killed before the flush

    @property
    def latest(self) -> int:
        """The latest epoch; -1 if there are no entries."""
        return self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Epochs and their start offsets."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an entry for a new epoch, and remove entries from `start_offset` on. Ignore an older or known epoch."""
        if epoch > self.latest:
            self._replace([entry for entry in self._entries if entry[1] < start_offset] + [(epoch, start_offset)])

    def restore(self, found: Iterable[tuple[int, int]]) -> None:
        """Replace the entries when a log is opened.

        :param found: epochs and start offsets in order of offsets; of each epoch only the first is kept.
        """
        entries: list[tuple[int, int]] = []
        for epoch, start_offset in found:
            if not entries or epoch > entries[-1][0]:
                entries.append((epoch, start_offset))
        if entries != self._entries:
            self._replace(entries)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch not above the requested one, and its end offset.

        Return -1 and -1 if the requested epoch is above all known epochs. If the requested epoch is below all known
        epochs, return it and the start offset of the first entry, which is above all records of the requested epoch.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        if following == len(self._entries):  # includes a negative epoch while there are no entries
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        found = self._entries[following - 1][0] if following else epoch
        return found, self._entries[following][1]

    def epoch_for_offset(self, offset: int) -> int:
        """Return the epoch of the record at an offset; -1 for an offset below the first entry."""
        following = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[following - 1][0] if following else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that start at `end_offset` or above."""
        keep = bisect_left(self._entries, end_offset, key=lambda entry: entry[1])
        if keep < len(self._entries):
            self._replace(self._entries[:keep])

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs that end at `start_offset` or below, and let the epoch of `start_offset` start there."""
        following = bisect_right(self._entries, start_offset, key=lambda entry: entry[1])
        if following and self._entries[0][1] < start_offset:
            in_force = self._entries[following - 1][0]
            self._replace([(in_force, start_offset), *self._entries[following:]])

    def _replace(self, entries: list[tuple[int, int]]) -> None:
        write_epochs(self._disk, self._path, entries)
        self._entries, self._is_durable = entries, False

    def take_unflushed(self) -> list[str]:
        """Return the path if the last change is not durable. The caller must flush the file at once."""
        was_durable, self._is_durable = self._is_durable, True
        return [] if was_durable else [self._path]
