"""Loading of a log: without verification after a clean shutdown, with recovery of its batches after a crash.

Follows: org.apache.kafka.storage.internals.log.LogLoader.

Rules of this file, as in Kafka:
- Closed segments below the recovery point were flushed, and are not recovered. After a clean shutdown no segment is
  recovered. All other segments are recovered in order, and everything from the first incomplete or corrupt batch on is
  deleted.
- Indexes without a `.log` and temporary files, which a crash between two steps may leave, are deleted.
- If a log ends below its checkpointed start offset, because segments were lost, it is replaced by an empty log that
  starts at that offset.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from reference_broker.core.disk import Disk
from reference_broker.core.log.log_segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, LogSegment
from reference_broker.protocol.record_batch import BatchHeader

_LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".swap", ".tmp")
_OFFSET_DIGITS = 20


@dataclass(frozen=True, slots=True)
class SegmentLoader:
    """Loader of the segments of one directory."""

    disk: Disk
    directory: str
    index_interval_bytes: int
    now_ms: int

    def load(
        self, *, clean: bool, recovery_point: int, log_start_offset: int, observe: Callable[[BatchHeader], None]
    ) -> list[LogSegment]:
        """Open and recover the segments, and return them in order of offsets; there is at least one.

        :param observe: called with the header of every recovered batch.
        """
        bases = self._remove_leftovers()
        segments: list[LogSegment] = []
        for base_offset, next_base in zip_longest(bases, bases[1:]):
            segment = self._open(base_offset, next_base)
            segments.append(segment)
            is_trusted = clean or (next_base is not None and next_base <= recovery_point)
            if not is_trusted and segment.recover(observe):
                break
            if is_trusted:
                segment.sanity_check()
            if is_trusted and next_base is None:
                segment.load_tail()
        for base_offset in bases[len(segments) :]:
            self._open(base_offset, None).delete()
        if segments and segments[-1].end_offset >= log_start_offset:
            return segments
        for segment in segments:
            segment.delete()
        return [self.create(log_start_offset)]

    def create(self, base_offset: int) -> LogSegment:
        """Create an empty segment."""
        return LogSegment.create(
            self.disk,
            self.directory,
            base_offset,
            index_interval_bytes=self.index_interval_bytes,
            now_ms=self.now_ms,
        )

    def _open(self, base_offset: int, next_base: int | None) -> LogSegment:
        return LogSegment(
            self.disk,
            self.directory,
            base_offset,
            index_interval_bytes=self.index_interval_bytes,
            end_offset=base_offset if next_base is None else next_base,
            now_ms=self.now_ms,
        )

    def _remove_leftovers(self) -> list[int]:
        """Delete indexes without a `.log` and temporary files, and return the base offsets of the segments."""
        names = self.disk.list(self.directory)
        bases = [int(name[:_OFFSET_DIGITS]) for name in names if _is_segment_file(name, LOG_SUFFIX)]
        for name in names:
            is_index = _is_segment_file(name, INDEX_SUFFIX) or _is_segment_file(name, TIME_INDEX_SUFFIX)
            is_orphan = is_index and int(name[:_OFFSET_DIGITS]) not in bases
            if is_orphan or name.endswith(_LEFTOVER_SUFFIXES):
                self.disk.delete(f"{self.directory}/{name}")
        return sorted(bases)


def _is_segment_file(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and len(name) == _OFFSET_DIGITS + len(suffix) and name[:_OFFSET_DIGITS].isdigit()
