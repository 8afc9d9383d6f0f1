"""Start offsets of the leader epochs of a log.

Follows: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache (KIP-101, KIP-279, KIP-320).

By this memory replicas find out where their logs part.

Rules of this file:
- Entries rise strictly in epoch and in start offset. An epoch without records has an entry only while it is the latest:
  its leader has begun it and appended nothing yet.
- Every change is written (`leader-epoch-checkpoint`) before the records that follow it, and is durable when the log is
  flushed: what a crash takes of it is found again in the batches from the recovery point on.
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
        self._is_durable = not disk.exists(self._path)  # who wrote it may have been killed before it was flushed

    @property
    def latest(self) -> int:
        """The latest epoch that began; -1 in an empty log."""
        return self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Epochs with their start offsets."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records of `epoch` begin at `start_offset`, unless they have begun before."""
        if epoch > self.latest:
            self._replace([entry for entry in self._entries if entry[1] < start_offset] + [(epoch, start_offset)])

    def restore(self, found: Iterable[tuple[int, int]]) -> None:
        """Begin with what was found on opening the log, of which the first entry of each epoch counts."""
        entries: list[tuple[int, int]] = []
        for epoch, start_offset in found:
            if not entries or epoch > entries[-1][0]:
                entries.append((epoch, start_offset))
        if entries != self._entries:
            self._replace(entries)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above the requested one, and the offset at which it ended.

        -1 and -1 where the requested epoch is above all that the log knows. Before the first known epoch the answer is
        the requested epoch itself with the first entry's start: all that is left of it lies below.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        if following == len(self._entries):  # also a negative epoch of a request, if the log knows none
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        found = self._entries[following - 1][0] if following else epoch
        return found, self._entries[following][1]

    def epoch_for_offset(self, offset: int) -> int:
        """Epoch of the record at an offset."""
        following = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[following - 1][0] if following else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that began at `end_offset` or above."""
        keep = bisect_left(self._entries, end_offset, key=lambda entry: entry[1])
        if keep < len(self._entries):
            self._replace(self._entries[:keep])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended below `start_offset`; the one in force there now begins there."""
        following = bisect_right(self._entries, start_offset, key=lambda entry: entry[1])
        if following and self._entries[0][1] < start_offset:
            in_force = self._entries[following - 1][0]
            self._replace([(in_force, start_offset), *self._entries[following:]])

    def _replace(self, entries: list[tuple[int, int]]) -> None:
        write_epochs(self._disk, self._path, entries)
        self._entries, self._is_durable = entries, False

    def take_unflushed(self) -> list[str]:
        """The path, if the last change is not durable. The caller flushes it at once."""
        was_durable, self._is_durable = self._is_durable, True
        return [] if was_durable else [self._path]
