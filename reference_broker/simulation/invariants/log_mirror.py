"""Mirror of the batches in the files of one log. It is kept while the node of the replica is down.

The mirror reads only the bytes after the last known batch. Therefore its cost does not depend on the length of the log.
It reads header by header, without the lookups of the log. Therefore a wrong index does not affect it.
"""

from bisect import bisect_right
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, cast

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, MAGIC, NO_TIMESTAMP, BatchHeader, checksum
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.invariants.violation import InvariantViolation

_base_offset = attrgetter("base_offset")


class Batch(NamedTuple):
    """One batch. Its first four fields are the same on every replica."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    segment: int
    """Base offset of the segment that contains the batch."""
    position: int
    """Position of the batch in the segment file."""
    size_bytes: int
    max_timestamp_ms: int = NO_TIMESTAMP

    def is_same_as(self, other: "Batch") -> bool:
        """Whether this batch and that of another replica have the same records, offsets and epoch."""
        return self[:4] == other[:4]

    def __str__(self) -> str:
        return f"{self.base_offset}-{self.last_offset} of epoch {self.epoch} (crc {self.crc:08x})"


@dataclass(frozen=True, slots=True)
class LogChange:
    """Changes of a log since its last check.

    :param removed: batches removed from its end, the last one first.
    :param added: batches appended at its end, in order.
    :param forgotten: batches deleted from its start, with their segments, in order.
    """

    removed: list[Batch]
    added: list[Batch]
    forgotten: list[Batch]


class LogMirror:
    """The batches in the files of one log, sorted by offset."""

    __slots__ = ("batches",)

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    @property
    def end_offset(self) -> int:
        """The offset after the last batch; 0 if there is none."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def holding(self, offset: int) -> Batch | None:
        """Return the batch that contains an offset; None if there is none."""
        number = bisect_right(self.batches, offset, key=_base_offset) - 1
        if number < 0 or self.batches[number].last_offset < offset:
            return None
        return self.batches[number]

    def before(self, end_offset: int) -> Batch | None:
        """Return the last batch that ends below an offset; None if there is none."""
        number = bisect_right(self.batches, end_offset - 1, key=attrgetter("last_offset")) - 1
        return self.batches[number] if number >= 0 else None

    def between(self, start_offset: int, end_offset: int) -> list[Batch]:
        """Return the batches that begin in a range of offsets, which excludes `end_offset`."""
        first = bisect_right(self.batches, start_offset - 1, key=_base_offset)
        last = bisect_right(self.batches, end_offset - 1, key=_base_offset)
        return self.batches[first:last]

    def headers_backwards(self, log: UnifiedLog) -> Iterator[BatchHeader]:
        """Yield the headers of the batches, the last batch first, until a segment file is missing."""
        files = cast("MemoryDisk", log.disk).files
        for batch in reversed(self.batches):
            data = files.get(_path(log.directory, batch.segment))
            if data is None:
                return
            yield BatchHeader.parse(data, batch.position)

    def not_durable_below(self, log: UnifiedLog, end_offset: int) -> Batch | None:
        """Return the last batch that ends below an offset; None if there is none, or if no power cut can lose it."""
        last = self.before(end_offset)
        if last is None:
            return None
        disk, path = cast("MemoryDisk", log.disk), _path(log.directory, last.segment)
        if type(disk) is MemoryDisk:
            return None  # a `MemoryDisk` loses nothing in a power cut
        assert isinstance(disk, SimulatedDisk)
        is_durable = disk.durable_bytes(path) >= last.position + last.size_bytes
        return None if is_durable else last

    def follow(self, log: UnifiedLog) -> LogChange:
        """Read the changes of the files since the last call.

        :raises InvariantViolation: the files contain something other than complete batches with correct checksums.
        """
        files = cast("MemoryDisk", log.disk).files
        segments = log.segments
        forgotten = self._forget_before(segments[0].base_offset)
        self._recall(log.directory, segments, files)
        removed = []
        while self.batches and not self._stands(self.batches[-1], log.directory, segments, files):
            removed.append(self.batches.pop())
        known = len(self.batches)
        self._read_on(log.directory, segments, files)
        return LogChange(removed, self.batches[known:], forgotten)

    def _forget_before(self, offset: int) -> list[Batch]:
        """Remove the batches of segments that were deleted from the start of the log."""
        if not self.batches or self.batches[0].last_offset >= offset:
            return []
        count = bisect_right(self.batches, offset - 1, key=attrgetter("last_offset"))
        forgotten = self.batches[:count]
        del self.batches[:count]
        return forgotten

    def _recall(self, directory: str, segments: Sequence[LogSegment], files: MutableMapping[str, bytearray]) -> None:
        """Read deleted segments at the start of the log, if a power cut has restored them."""
        if self.batches and segments[0].base_offset < self.batches[0].segment:
            before = LogMirror()
            before._read_on(directory, [each for each in segments if each.base_offset < self.batches[0].segment], files)
            self.batches[:0] = before.batches

    def _stands(
        self, batch: Batch, directory: str, segments: Sequence[LogSegment], files: MutableMapping[str, bytearray]
    ) -> bool:
        """Whether the log still has a batch, at the same position."""
        number = bisect_right(segments, batch.segment, key=_base_offset) - 1
        if number < 0 or segments[number].base_offset != batch.segment:
            return False
        if segments[number].end_offset <= batch.last_offset:
            return False
        data = files.get(_path(directory, batch.segment), b"")
        if len(data) < batch.position + batch.size_bytes:
            return False
        header = BatchHeader.parse(data, batch.position)
        return (header.base_offset, header.last_offset, header.leader_epoch, header.crc) == batch[:4]

    def _read_on(self, directory: str, segments: Sequence[LogSegment], files: MutableMapping[str, bytearray]) -> None:
        """Read the batches after the last known one."""
        number, position = 0, 0
        if self.batches:
            last = self.batches[-1]
            number = bisect_right(segments, last.segment, key=_base_offset) - 1
            position = last.position + last.size_bytes
        for segment in segments[number:]:
            data = files.get(_path(directory, segment.base_offset), b"")
            while position < len(data):
                batch = _parse(data, position, segment.base_offset, directory)
                self.batches.append(batch)
                position += batch.size_bytes
            position = 0


def _parse(data: bytes | bytearray, position: int, segment: int, directory: str) -> Batch:
    left_bytes = len(data) - position
    if left_bytes >= HEADER_SIZE_BYTES:
        header = BatchHeader.parse(data, position)
        if header.magic == MAGIC and HEADER_SIZE_BYTES <= header.size_bytes <= left_bytes:
            if header.crc != checksum(memoryview(data)[position : position + header.size_bytes]):
                detail = f"{directory}: the checksum of the batch at offset {header.base_offset} is wrong"
                raise InvariantViolation("batches-intact", detail)
            place = segment, position, header.size_bytes
            identity = header.base_offset, header.last_offset, header.leader_epoch, header.crc
            return Batch(*identity, *place, header.max_timestamp_ms)
    detail = f"{directory}, segment {segment}: no batch at byte {position}, {left_bytes} bytes before the end"
    raise InvariantViolation("batches-intact", detail)


def _path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}.log"
