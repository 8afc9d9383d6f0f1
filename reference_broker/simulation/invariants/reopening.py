"""Invariants of a log that was closed cleanly, checked in copies of its files.

| name                 | what must hold                                                                               |
|----------------------|----------------------------------------------------------------------------------------------|
| `opens-as-closed`    | the log opens with the same offsets, epochs, producers and segment files. This also holds if |
|                      | almost all records were deleted before it was closed (DeleteRecords)                         |
| `recovery-verifies`  | if a batch above the recovery point is corrupt, a log that is opened as after a crash ends   |
|                      | before this batch                                                                            |
| those of `oracle`    | they also hold when the last batches are truncated one after the other, when almost all      |
|                      | records are deleted, and when a batch is appended whose offset is too high for the active    |
|                      | segment                                                                                      |

After a clean shutdown, the recovery point is the log end. `LogLoader` trusts the segments, and reads only the tail of
the last segment, from the last entry of the offset index on. An index must be rebuilt if it is missing, or if its last
entry contradicts its segment (`LogSegment.sanityCheck`); no record may be lost. Indexes without a segment are deleted.
Bytes after the last complete batch are truncated.

When a node has shut down cleanly, each of its logs is opened in copies of its files:
- with unchanged files;
- with a wrong position, or a wrong offset, in the last entry of the last offset index;
- without the last offset index, without the last time index, or without the leader epochs;
- with an offset index or a time index that has no segment;
- with a part of a batch header at the end, or with a batch at the end that lacks its last byte.

`damaged_indexes` checks lookups.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.checkpoints import CLEAN_SHUTDOWN_FILE, LEADER_EPOCH_FILE
from reference_broker.core.log.index import RELATIVE_OFFSET_MAX
from reference_broker.core.log.log_segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.simulation.invariants.damaged_indexes import check_damaged_indexes
from reference_broker.simulation.invariants.log_copies import copy_log_files
from reference_broker.simulation.invariants.log_mirror import LogMirror
from reference_broker.simulation.invariants.oracle import check_log
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched

_TRUNCATIONS = 4
"""Number of times that the last batch is truncated."""
_ENTRY_SIZE_BYTES = 8
"""Size of an entry of an offset index: relative offset and position."""
_OFFSET_END, _POSITION_END = -5, -1
"""Lowest byte of the relative offset and of the position in the last entry, counted from the end of the index."""
_NO_SEGMENT = 2**62
"""The base offset of no segment."""


class ReopeningInvariants(Observer):
    """Observer that opens the logs of each node that has shut down cleanly."""

    def ended(self, watched: Watched) -> None:
        """Check every log of a node that has shut down cleanly."""
        if watched.machine.ended_by == "stop" and watched.disk.exists(CLEAN_SHUTDOWN_FILE):
            for replica in watched.open:
                if replica.partition is not None:
                    check_closed(str(replica), watched.disk, replica.partition.log, watched.machine.now.wall_ms)


def check_closed(name: str, disk: MemoryDisk, log: UnifiedLog, wall_ms: int) -> None:
    """Check a closed log with all checks of this module, and with those of `damaged_indexes`.

    :param wall_ms: the wall-clock time of the node.
    """
    check_reopening(name, disk, log)
    check_changes(name, disk, log, wall_ms)
    check_verification(name, disk, log, wall_ms)
    check_damaged_indexes(name, disk, log, wall_ms)


def check_reopening(name: str, disk: MemoryDisk, log: UnifiedLog) -> None:
    """Open the log with each kind of damage, and compare it with the closed log.

    :raises InvariantViolation: `opens-as-closed`.
    """
    for damage, apply in _DAMAGES.items():
        copy = copy_log_files(disk, log.directory)
        if not apply(copy, log.directory):
            continue
        opened = UnifiedLog.open(
            copy, log.directory, log.config, now_ms=0, clean=True, log_start_offset=log.log_start_offset
        )
        was, found = _content(log), _content(opened)
        if found != was:
            raise InvariantViolation(
                "opens-as-closed", f"{name} was closed with {was}, and is opened with {damage}: {found}"
            )
        if opened.recovery_point != opened.log_end_offset:
            detail = f"{name} is opened with {damage}, and its recovery point is {opened.recovery_point}"
            raise InvariantViolation("opens-as-closed", detail)
        entry = opened.segments[-1].offset_index.last
        if entry is not None and entry.last_offset != _last_offset_at(copy, log.directory, entry.position):
            raise InvariantViolation("opens-as-closed", f"{name} is opened with {damage}, and keeps {entry}")


def check_changes(name: str, disk: MemoryDisk, log: UnifiedLog, wall_ms: int) -> None:
    """Truncate the last batches of a copy, delete records, open it again, and append a batch with a high offset.

    All derived state is checked after each change.

    :param wall_ms: the wall-clock time of the node.
    :raises InvariantViolation: `opens-as-closed`, or an invariant of `oracle`.
    """
    copy, directory = copy_log_files(disk, log.directory), log.directory
    opened = UnifiedLog.open(copy, directory, log.config, wall_ms, clean=True, log_start_offset=log.log_start_offset)
    trusted_offset = opened.log_end_offset

    def check(change: str) -> None:
        mirror = LogMirror()
        mirror.follow(opened)
        check_log(f"{name}, {change}", opened, mirror, wall_ms, trusted_offset=trusted_offset)

    for _ in range(_TRUNCATIONS):
        if opened.log_end_offset - opened.log_start_offset > 1:
            opened.truncate_to(opened.log_end_offset - 1, wall_ms)
            check("truncated")
    for offset in (_end_of_largest_batch(opened), opened.log_end_offset - 1):
        if offset > opened.log_start_offset:
            opened.maybe_increment_log_start_offset(offset)
            check("without its first records")
    opened.close()
    opened.remove_expired_producers(wall_ms)
    closed, opened = opened, _opened_again(opened, wall_ms)
    _check_producers(name, closed, opened)
    if _append_high_offset(opened, wall_ms):
        check("with a batch beyond the segment")


def check_verification(name: str, disk: MemoryDisk, log: UnifiedLog, wall_ms: int) -> None:
    """Damage the last batch in a copy, which is then in a closed segment, and open the copy as after a crash.

    :raises InvariantViolation: `recovery-verifies`.
    """
    copy, directory = copy_log_files(disk, log.directory), log.directory
    opened = UnifiedLog.open(copy, directory, log.config, wall_ms, clean=True, log_start_offset=log.log_start_offset)
    active = opened.segments[-1]
    last = next(active.headers(opened.log_end_offset - 1), None)
    if last is None or last.base_offset < opened.log_start_offset:
        return
    opened.roll(wall_ms)
    copy.files[active.log_path][-1] ^= 1
    again = UnifiedLog.open(
        copy, directory, log.config, wall_ms,
        recovery_point=last.base_offset, log_start_offset=opened.log_start_offset,
    )  # fmt: skip
    if again.log_end_offset != last.base_offset:
        detail = f"{name} ends at {again.log_end_offset} after recovery, and the batch at {last.base_offset} is corrupt"
        raise InvariantViolation("recovery-verifies", detail)


def _end_of_largest_batch(log: UnifiedLog) -> int:
    """Return the last offset of a batch that has the most records; 0 if there is no batch."""
    headers = [header for segment in log.segments for header in segment.headers(log.log_start_offset)]
    largest = max(headers, key=lambda header: header.last_offset_delta, default=None)
    return 0 if largest is None else largest.last_offset


def _opened_again(log: UnifiedLog, wall_ms: int) -> UnifiedLog:
    """Open a closed log."""
    return UnifiedLog.open(
        log.disk, log.directory, log.config, wall_ms,
        clean=True, recovery_point=log.recovery_point, log_start_offset=log.log_start_offset,
    )  # fmt: skip


def _check_producers(name: str, closed: UnifiedLog, opened: UnifiedLog) -> None:
    """Compare the last batches of all producers, unless the log is empty: as in Kafka, it then has no producers."""
    was, found = (
        {producer_id: (state.epoch, state.batches[-1]) for producer_id, state in log.producers.states.items()}
        for log in (closed, opened)
    )
    if found != was and closed.log_end_offset > closed.log_start_offset:
        raise InvariantViolation(
            "opens-as-closed", f"{name} was closed with producers {was}, and is opened with {found}"
        )


def _append_high_offset(log: UnifiedLog, wall_ms: int) -> bool:
    """Append the first batch again, with an offset that the active segment cannot contain.

    A follower may receive such a batch, because compaction leaves gaps. Return False if the log or its
    active segment is empty.
    """
    active = log.segments[-1]
    batch = log.read(log.log_start_offset, 1, log.log_end_offset)
    if not batch or not active.size_bytes:
        return False
    header = BatchHeader.parse(batch)
    base_offset = active.base_offset + RELATIVE_OFFSET_MAX + 1 - header.last_offset_delta
    placed = header._replace(base_offset=base_offset, leader_epoch=log.latest_epoch)
    log.append_placed(placed, batch, wall_ms)
    return True


def _content(log: UnifiedLog) -> tuple[object, ...]:
    """Return start, end, size in bytes, epochs with records (`LogLoader` drops others), and names of segment files."""
    end_offset = log.log_end_offset
    return (
        log.log_start_offset,
        end_offset,
        log.size_bytes,
        tuple(entry for entry in log.epochs.entries if entry[1] < end_offset),
        [name for name in log.disk.list(log.directory) if name.endswith((LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX))],
    )


def _last_file(disk: MemoryDisk, directory: str, suffix: str) -> str:
    """Return the path of the last file with a suffix; an empty string if there is none."""
    paths = (path for path in disk.files if path.startswith(f"{directory}/") and path.endswith(suffix))
    return max(paths, default="")


def _last_offset_at(disk: MemoryDisk, directory: str, position: int) -> int:
    """Return the last offset of the batch at a position of the last segment."""
    records = disk.files[_last_file(disk, directory, LOG_SUFFIX)]
    return BatchHeader.parse(records[position : position + HEADER_SIZE_BYTES]).last_offset


def _damage_last_entry(disk: MemoryDisk, directory: str, byte_index: int) -> bool:
    """Change a byte in the last entry of the last offset index. Return False if there is no entry."""
    path = _last_file(disk, directory, INDEX_SUFFIX)
    if not path or len(disk.files[path]) < _ENTRY_SIZE_BYTES:
        return False
    disk.files[path][byte_index] ^= 1
    return True


def _delete_last_index(disk: MemoryDisk, directory: str, suffix: str) -> bool:
    """Delete an index of the last segment. Return True."""
    disk.delete(_last_file(disk, directory, suffix))
    return True


def _delete_epochs(disk: MemoryDisk, directory: str) -> bool:
    """Delete the leader epoch checkpoint. Return False if there is none."""
    path = f"{directory}/{LEADER_EPOCH_FILE}"
    if not disk.exists(path):
        return False
    disk.delete(path)
    return True


def _add_index(disk: MemoryDisk, directory: str, suffix: str) -> bool:
    """Add an index without a segment. Return True."""
    disk.append(f"{directory}/{_NO_SEGMENT:020d}{suffix}", b"")
    return True


def _tear_tail(disk: MemoryDisk, directory: str) -> bool:
    """Append a part of a batch header to the last segment. Return True."""
    disk.append(_last_file(disk, directory, LOG_SUFFIX), bytes(HEADER_SIZE_BYTES - 1))
    return True


def _tear_batch(disk: MemoryDisk, directory: str) -> bool:
    """Append the first batch of the last segment again, without its last byte. Return False if there is no batch."""
    path = _last_file(disk, directory, LOG_SUFFIX)
    records = disk.files[path]
    if not records:
        return False
    disk.append(path, bytes(records[: BatchHeader.parse(records).size_bytes - 1]))
    return True


_DAMAGES: Mapping[str, Callable[[MemoryDisk, str], bool]] = MappingProxyType(
    {
        "all its files": lambda *_: True,
        "a wrong position in the last index entry": partial(_damage_last_entry, byte_index=_POSITION_END),
        "a wrong offset in the last index entry": partial(_damage_last_entry, byte_index=_OFFSET_END),
        "no last offset index": partial(_delete_last_index, suffix=INDEX_SUFFIX),
        "no last time index": partial(_delete_last_index, suffix=TIME_INDEX_SUFFIX),
        "no leader epochs": _delete_epochs,
        "an offset index without a segment": partial(_add_index, suffix=INDEX_SUFFIX),
        "a time index without a segment": partial(_add_index, suffix=TIME_INDEX_SUFFIX),
        "a part of a header at the end": _tear_tail,
        "a part of a batch at the end": _tear_batch,
    }
)
"""By description of the damage: the function that damages the files. It returns False if there is nothing to damage."""
