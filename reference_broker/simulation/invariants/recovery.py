"""Invariants of a recovered log, checked by a replay of its batches (`LogLoader.recoverLog`, `LogSegment.recover`).

| name                      | what must hold                                                                          |
|---------------------------|-----------------------------------------------------------------------------------------|
| `recovered-producers`     | only the last batch of each producer is known, as in a producer snapshot                |
| `recovered-epochs`        | the leader epochs are those of the batches, even if the leader epoch checkpoint has     |
|                           | epochs of truncated batches                                                             |
| `recovered-index`         | the offset index of each recovered segment has the entries that appends of its batches  |
|                           | would write                                                                             |
| `recovered-time-index`    | the time index has the entries that these appends would write. Its last entry has the   |
|                           | largest timestamp                                                                       |

The replay reads only the `.log` files, header by header, and shares no code with the log.
"""

import struct
from collections.abc import Iterator
from typing import cast

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.log_segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import NO_PRODUCER_ID, NO_TIMESTAMP, BatchHeader
from reference_broker.simulation.invariants.violation import InvariantViolation

_INDEX_ENTRY = struct.Struct(">ii")
_TIME_INDEX_ENTRY = struct.Struct(">qi")


def check_recovered(name: object, log: UnifiedLog, recovery_point: int, wall_ms: int) -> None:
    """Compare a log that was opened after a crash with the replay.

    :param name: the name of the replica, for the message.
    :param recovery_point: the recovery point with which the log was opened.
    :param wall_ms: the wall-clock time of the node. Producers that have expired at this time are not compared.
    """
    replay = _Replay(name, log)
    replay.check_producers(wall_ms)
    replay.check_epochs()
    bases = [segment.base_offset for segment in log.segments]
    first = max((base for base in bases if base <= recovery_point), default=bases[0])
    for base in bases[bases.index(first) :]:
        replay.check_indexes(base)


class _Replay:
    def __init__(self, name: object, log: UnifiedLog) -> None:
        self._name = name
        self._log = log
        self._files = cast("MemoryDisk", log.disk).files

    def _violated(self, name: str, detail: str) -> None:
        raise InvariantViolation(name, f"{self._name}: after a crash, {detail}")

    def _batches(self, base_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        data, position = self._files[self._path(base_offset, LOG_SUFFIX)], 0
        while position < len(data):
            header = BatchHeader.parse(data, position)
            yield position, header
            position += header.size_bytes

    def _headers(self) -> Iterator[BatchHeader]:
        """Yield the headers of all batches that end at or above the log start."""
        for segment in self._log.segments:
            for _, header in self._batches(segment.base_offset):
                if header.last_offset >= self._log.log_start_offset:
                    yield header

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self._log.directory}/{base_offset:020d}{suffix}"

    def check_producers(self, wall_ms: int) -> None:
        log = self._log
        last = {header.producer_id: header for header in self._headers() if header.producer_id != NO_PRODUCER_ID}
        for producer_id, state in log.producers.states.items():
            if len(state.batches) > 1:
                self._violated(
                    "recovered-producers", f"more than the last batch of producer {producer_id} is known: {state}"
                )
        for producer_id, header in last.items():
            known = log.producers.get(producer_id)
            if wall_ms - header.max_timestamp_ms >= log.config.producer_id_expiration_ms:
                continue
            expected = header.producer_epoch, header.base_sequence, header.last_sequence, header.last_offset
            found = known and (
                known.epoch,
                known.batches[-1].base_sequence,
                known.batches[-1].last_sequence,
                known.batches[-1].last_offset,
            )
            if found != expected:
                self._violated(
                    "recovered-producers", f"the state of producer {producer_id} is {known}, its last batch is {header}"
                )

    def check_epochs(self) -> None:
        """Compare the leader epochs, unless the log is empty: it keeps the epoch of its last deleted record."""
        expected: list[tuple[int, int]] = []
        for header in self._headers():
            if not expected or header.leader_epoch > expected[-1][0]:
                expected.append((header.leader_epoch, max(header.base_offset, self._log.log_start_offset)))
        known = list(self._log.epochs.entries)
        if known != expected and self._log.log_start_offset < self._log.log_end_offset:
            self._violated("recovered-epochs", f"the cache has {known}, the batches have {expected}")

    def check_indexes(self, base_offset: int) -> None:
        index, times = bytearray(), bytearray()
        indexed_at, largest_ms, largest_offset, last_ms = 0, NO_TIMESTAMP, base_offset, NO_TIMESTAMP
        interval_bytes = self._log.config.index_interval_bytes
        for position, header in self._batches(base_offset):
            if header.max_timestamp_ms > largest_ms:
                largest_ms, largest_offset = header.max_timestamp_ms, header.last_offset
            if position - indexed_at > interval_bytes:
                indexed_at = position
                index += _INDEX_ENTRY.pack(header.last_offset - base_offset, position)
                if largest_ms > last_ms:
                    times += _TIME_INDEX_ENTRY.pack(largest_ms, largest_offset - base_offset)
                    last_ms = largest_ms
        if largest_ms > last_ms:
            times += _TIME_INDEX_ENTRY.pack(largest_ms, largest_offset - base_offset)
        for name, suffix, expected in (
            ("recovered-index", INDEX_SUFFIX, index),
            ("recovered-time-index", TIME_INDEX_SUFFIX, times),
        ):
            found = self._files.get(self._path(base_offset, suffix))
            if found != expected:
                self._violated(name, f"segment {base_offset} has {found!r}, the replay {bytes(expected)!r}")
