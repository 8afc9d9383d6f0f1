"""Invariants of lookups in a log whose indexes were damaged while it was closed.

| name                  | what must hold                                                                              |
|-----------------------|---------------------------------------------------------------------------------------------|
| those of `oracle`     | lookups by offset and by time, and the largest timestamps of segments, are correct          |
| `indexes-kept`        | when the same offsets and timestamps are looked up again, no index is rebuilt               |

An index is derived from its segment. `LogSegment.sanityCheck` accepts an index whose size is a multiple of the entry
size. Therefore only a lookup can detect a wrong or missing entry. The indexes are damaged in copies of the files. Each
copy ends with a batch without timestamps, which is in the active segment or in a closed one.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.log_segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    with_timestamp,
)
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.invariants.log_copies import copy_log_files
from reference_broker.simulation.invariants.oracle import check_lookups
from reference_broker.simulation.invariants.violation import InvariantViolation

_ENTRY_BYTES: Mapping[str, int] = MappingProxyType({INDEX_SUFFIX: 8, TIME_INDEX_SUFFIX: 12})
_FIRST_END, _SECOND_END = -5, -1
"""Lowest byte of the first and of the second field of the last entry, counted from the end of an index file."""


def check_damaged_indexes(name: str, disk: MemoryDisk, log: UnifiedLog, wall_ms: int) -> None:
    """Damage the indexes of all segments in a copy in each way, and look up offsets and timestamps twice.

    :param wall_ms: the wall-clock time of the node.
    :raises InvariantViolation: `indexes-kept`, or an invariant of lookups.
    """
    for (damage, apply), is_rolled in product(_DAMAGES.items(), (False, True)):
        copy = copy_log_files(disk, log.directory)
        _append_without_timestamp(_open(copy, log, wall_ms), wall_ms, is_rolled=is_rolled)
        for path in copy.files:
            apply(copy, path)
        opened = _open(copy, log, wall_ms)
        check_lookups(f"{name}, with {damage}", opened)
        copy.changed.clear()
        check_lookups(f"{name}, with {damage}, again", opened)
        if copy.changed:
            raise InvariantViolation("indexes-kept", f"{name}, with {damage}: lookups change {sorted(copy.changed)}")


def _open(copy: SimulatedDisk, log: UnifiedLog, wall_ms: int) -> UnifiedLog:
    return UnifiedLog.open(copy, log.directory, log.config, wall_ms, clean=True, log_start_offset=log.log_start_offset)


def _append_without_timestamp(log: UnifiedLog, wall_ms: int, *, is_rolled: bool) -> None:
    """Append the first batch again, without timestamps, and close the log.

    :param is_rolled: roll the log after that batch. `LogLoader` does not scan the end of a closed segment.
    """
    batch = log.read(log.log_start_offset, 1, log.log_end_offset)
    if batch:
        header = BatchHeader.parse(batch)._replace(base_offset=log.log_end_offset, leader_epoch=log.latest_epoch)
        placed = with_timestamp(header, batch[HEADER_SIZE_BYTES:], TimestampType.CREATE_TIME, NO_TIMESTAMP)
        log.append_placed(placed, batch, wall_ms)
        if is_rolled:
            log.roll(wall_ms)
    log.close()


def _keep_entries(disk: MemoryDisk, path: str, suffix: str, count: int) -> None:
    """Truncate an index to its first entries."""
    if path.endswith(suffix):
        disk.truncate(path, count * _ENTRY_BYTES[suffix])


def _change_last_entry(disk: MemoryDisk, path: str, suffix: str, byte_index: int) -> None:
    """Change a byte in the last entry of an index."""
    if path.endswith(suffix) and disk.files[path]:
        disk.files[path][byte_index] ^= 1


_DAMAGES: Mapping[str, Callable[[MemoryDisk, str], None]] = MappingProxyType(
    {
        "correct indexes": lambda *_: None,
        "empty indexes": partial(_keep_entries, suffix=INDEX_SUFFIX, count=0),
        "empty time indexes": partial(_keep_entries, suffix=TIME_INDEX_SUFFIX, count=0),
        "one entry in each index": partial(_keep_entries, suffix=INDEX_SUFFIX, count=1),
        "one entry in each time index": partial(_keep_entries, suffix=TIME_INDEX_SUFFIX, count=1),
        "a wrong offset in each index": partial(_change_last_entry, suffix=INDEX_SUFFIX, byte_index=_FIRST_END),
        "a wrong position in each index": partial(_change_last_entry, suffix=INDEX_SUFFIX, byte_index=_SECOND_END),
        "a wrong timestamp in each time index": partial(
            _change_last_entry, suffix=TIME_INDEX_SUFFIX, byte_index=_FIRST_END
        ),
        "a wrong offset in each time index": partial(
            _change_last_entry, suffix=TIME_INDEX_SUFFIX, byte_index=_SECOND_END
        ),
    }
)
"""By description of the damage: the function that damages a file if it is an index of this kind."""
