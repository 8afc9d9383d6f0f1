"""Derived state of a log, recomputed from its batches when the log is opened or truncated, and at the end of a run.

| name                   | what must hold                                                                             |
|------------------------|--------------------------------------------------------------------------------------------|
| `batches-intact`       | the files contain what was written to them, and every checksum is correct                  |
| `segments-fit-log`     | segments are in order, and there are no files of other segments. The last segment ends     |
|                        | with its last batch; an earlier segment ends with its own last batch, or later             |
| `snapshots-taken`      | if the log was rolled since it was opened, the new segment has a snapshot of the producer  |
|                        | state at its base offset, unless the log start offset has reached it                       |
| `index-fits-log`       | the entries are those of existing batches, in order, and a lookup finds each entry. For a  |
|                        | sample of offsets, a lookup finds the position of the batch                                |
| `time-index-fits-log`  | each entry has the largest timestamp of the batches up to its offset. Each segment has the |
|                        | largest timestamp of its batches. For a sample of timestamps, a lookup finds an offset in  |
|                        | the first batch whose largest timestamp is not lower, in no more steps than the records of |
|                        | this batch require                                                                         |
| `epochs-fit-log`       | the leader epoch cache has the epochs of the batches, and at most one more epoch, which    |
|                        | begins at the log end                                                                      |
| `producers-fit-log`    | the producer states have the epochs, sequences and offsets of their last batches           |
| `recovery-keeps`       | if a copy of the log is recovered as after a crash, it has the same offsets, epochs and    |
|                        | producers                                                                                  |
| `recovery-point`       | the recovery point is within the log; the checkpoint files beside the logs can be read     |
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import TypeVar, cast

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.checkpoints import HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE, read_offsets
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.producer_state_manager import BATCHES_REMEMBERED, ProducerState
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import NO_PRODUCER_ID, NO_TIMESTAMP, BatchHeader, Codec, checksum
from reference_broker.protocol.steps import RECORDS_PER_STEP, Steps, finish
from reference_broker.simulation.invariants.log_copies import copy_crashed_log
from reference_broker.simulation.invariants.log_mirror import LogChange, LogMirror
from reference_broker.simulation.invariants.recovery import check_recovered
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_T = TypeVar("_T")
_LOOKUPS = 16
"""Approximate number of batches, evenly spread over the log, whose offsets and timestamps are looked up."""


class OracleInvariants(Observer):
    """Checks of a log when it is opened or truncated. The caller checks all logs at the end of a run."""

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """Check all derived state of an opened log."""
        check_replica(watched, replica)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check all derived state of a log that was truncated at its end."""
        if before.log.removed:
            check_replica(watched, replica)


def check_replica(watched: Watched, replica: Replica) -> None:
    """Check all derived state of the log of an open replica."""
    assert replica.partition is not None
    wall_ms = max(watched.machine.now.wall_ms, watched.wall_max_ms)
    check_log(replica, replica.partition.log, replica.log, wall_ms, trusted_offset=replica.trusted_offset)


def check_log(name: object, log: UnifiedLog, mirror: LogMirror, wall_ms: int, *, trusted_offset: int = 0) -> None:
    """Check all derived state of a log.

    :param wall_ms: the latest wall-clock time of the node. Producers may have expired at that time, even if the clock
        has jumped back since.
    :param trusted_offset: segments that begin below this offset existed when the log was opened. Their indexes are not
        checked, because a damaged index is rebuilt only when it is used.
    """
    oracle = _Oracle(name, log)
    oracle.check_batches(mirror)
    oracle.check_segments()
    oracle.check_snapshots(trusted_offset)
    oracle.check_indexes(trusted_offset)
    oracle.check_lookups()
    oracle.check_epochs()
    oracle.check_producers(wall_ms)
    oracle.check_recovery(wall_ms)


def check_lookups(name: object, log: UnifiedLog) -> None:
    """Check lookups by offset and by time, and the largest timestamps of the segments."""
    _Oracle(name, log).check_lookups()


def check_checkpoints(owner: object, disk: MemoryDisk) -> None:
    """Check that every line of the three checkpoint files can be read. The offsets may be outdated."""
    for name in (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE):
        if disk.exists(name) and len(read_offsets(disk, name)) != bytes(disk.files[name]).count(b"\n") - 2:
            raise InvariantViolation("recovery-point", f"{owner}: {name} cannot be read")


class _Oracle:
    def __init__(self, name: object, log: UnifiedLog) -> None:
        self._name = name
        self._log = log
        self._files = cast("MemoryDisk", log.disk).files
        self._headers = [list(self._read(segment)) for segment in log.segments]

    def _violated(self, invariant: str, detail: str) -> None:
        raise InvariantViolation(invariant, f"{self._name}: {detail}")

    def _read(self, segment: LogSegment) -> Iterator[tuple[int, BatchHeader]]:
        data, position = self._files[segment.log_path], 0
        while position < len(data):
            header = BatchHeader.parse(data, position)
            if header.crc != checksum(memoryview(data)[position : position + header.size_bytes]):
                self._violated("batches-intact", f"the checksum at {header.base_offset} is wrong")
            yield position, header
            position += header.size_bytes

    @property
    def _all(self) -> list[BatchHeader]:
        return [header for headers in self._headers for _, header in headers]

    # Batches and segments

    def check_batches(self, mirror: LogMirror) -> None:
        """Compare the batches with the mirror.

        Batches below the log start are ignored, because a power cut may restore deleted segments.
        """
        fresh = LogMirror()
        fresh.follow(self._log)
        start_offset = self._log.log_start_offset
        known, found = (
            [batch for batch in each.batches if batch.last_offset >= start_offset] for each in (mirror, fresh)
        )
        for one, other in zip_longest(known, found):
            if one != other:
                self._violated("batches-intact", f"the mirror has {one}, and the files have {other}")

    def check_segments(self) -> None:
        log, segments = self._log, self._log.segments
        for one, other in pairwise(segments):
            if not one.base_offset < other.base_offset:
                self._violated("segments-fit-log", f"segment {other.base_offset} follows {one.base_offset}")
        for segment, headers in zip(segments, self._headers, strict=True):
            end_offset = headers[-1][1].last_offset + 1 if headers else segment.base_offset
            is_permitted_gap = segment is not segments[-1] and segment.end_offset > end_offset
            if segment.end_offset != end_offset and not is_permitted_gap:
                self._violated(
                    "segments-fit-log",
                    f"segment {segment.base_offset} ends at {segment.end_offset}, its batches at {end_offset}",
                )
            if segment.size_bytes != len(self._files[segment.log_path]):
                self._violated("segments-fit-log", f"the size of segment {segment.base_offset} is not that of its file")
            if headers and headers[0][1].base_offset < segment.base_offset:
                self._violated(
                    "segments-fit-log", f"segment {segment.base_offset} begins with offset {headers[0][1].base_offset}"
                )
        owned = {segment.base_offset for segment in segments}
        for name in log.disk.list(log.directory):
            stem, _, suffix = name.partition(".")
            if suffix in {"log", "index", "timeindex"} and int(stem) not in owned:
                self._violated("segments-fit-log", f"{name} belongs to no segment")
        if not 0 <= log.recovery_point <= log.log_end_offset:
            self._violated(
                "recovery-point", f"{log.recovery_point} is not between 0 and the log end {log.log_end_offset}"
            )

    def check_snapshots(self, trusted_offset: int) -> None:
        """Check that there is a snapshot of the producer state at the base offset of every segment but the first.

        Only segments that begin above the log start and `trusted_offset` are checked, because
        `ProducerStateManager.truncateAndReload` deletes snapshots at or below the log start.
        """
        required_above = max(trusted_offset, self._log.log_start_offset)
        for segment in self._log.segments[1:]:
            path = f"{self._log.directory}/{segment.base_offset:020d}.snapshot"
            if segment.base_offset > required_above and path not in self._files:
                self._violated("snapshots-taken", f"segment {segment.base_offset} begins without a snapshot")

    # Indexes

    def check_indexes(self, trusted_offset: int) -> None:
        for segment, headers in zip(self._log.segments, self._headers, strict=True):
            if segment.base_offset < trusted_offset:
                continue
            by_position = dict(headers)
            largest = dict(_largest_timestamps(headers))
            index, times = segment.offset_index, segment.time_index
            entries = [index.entry(number) for number in range(len(index))]
            for entry in entries:
                assert entry is not None
                found = by_position.get(entry.position)
                if found is None or found.last_offset != entry.last_offset:
                    self._violated("index-fits-log", f"segment {segment.base_offset}: {entry} refers to {found}")
                if index.floor(entry.last_offset) != entry:
                    self._violated("index-fits-log", f"segment {segment.base_offset}: a lookup does not find {entry}")
            if any(not one < other for one, other in pairwise(cast("list[tuple[int, int]]", entries))):
                self._violated("index-fits-log", f"segment {segment.base_offset}: entries do not ascend")
            for number in range(len(times)):
                time_entry = times.entry(number)
                assert time_entry is not None
                if largest.get(time_entry.last_offset) != time_entry.timestamp_ms:
                    self._violated("time-index-fits-log", f"segment {segment.base_offset}: no batch for {time_entry}")
                if times.before(time_entry.timestamp_ms + 1) != time_entry:
                    detail = f"segment {segment.base_offset}: a lookup does not find {time_entry}"
                    self._violated("time-index-fits-log", detail)

    def check_lookups(self) -> None:
        log = self._log
        readable = [
            (segment, position, header)
            for segment, headers in zip(log.segments, self._headers, strict=True)
            for position, header in headers
            if header.last_offset >= log.log_start_offset
        ]
        for segment, position, header in readable[:: max(len(readable) // _LOOKUPS, 1)]:
            for offset in {max(header.base_offset, log.log_start_offset), header.last_offset}:
                if segment.position_of(offset) != position:
                    self._violated(
                        "index-fits-log",
                        f"offset {offset} is found at position {segment.position_of(offset)}, not {position}",
                    )
            self._check_time(header.max_timestamp_ms)
        self._check_largest_timestamps()
        after_all_ms = max((header.max_timestamp_ms for *_, header in readable), default=0) + 1
        if finish(log.offset_for_timestamp(after_all_ms)):
            self._violated(
                "time-index-fits-log", f"an offset is found for {after_all_ms} ms, which is after all records"
            )

    def _check_largest_timestamps(self) -> None:
        for segment, headers in zip(self._log.segments, self._headers, strict=True):
            largest_ms = max((header.max_timestamp_ms for _, header in headers), default=NO_TIMESTAMP)
            if segment.max_timestamp_ms != largest_ms:
                detail = f"segment {segment.base_offset} has {segment.max_timestamp_ms}, its batches {largest_ms}"
                self._violated("time-index-fits-log", f"largest timestamp of {detail}")

    def _check_time(self, timestamp_ms: int) -> None:
        log = self._log
        if timestamp_ms == NO_TIMESTAMP:
            return
        found, steps = _finished(log.offset_for_timestamp(timestamp_ms))
        expected = next(
            (
                header
                for header in self._all
                if header.last_offset >= log.log_start_offset and header.max_timestamp_ms >= timestamp_ms
            ),
            None,
        )
        assert expected is not None
        if found is not None and expected.base_offset <= found.offset <= expected.last_offset:
            records = expected.last_offset - expected.base_offset + 1
            if expected.codec == Codec.NONE and steps > records // RECORDS_PER_STEP:
                detail = f"{timestamp_ms} ms is found among {records} records in {steps} steps"
                self._violated("time-index-fits-log", detail)
        elif expected.base_offset >= log.log_start_offset:
            self._violated(
                "time-index-fits-log",
                f"{timestamp_ms} ms is first in the batch at {expected.base_offset}, and is found at {found}",
            )

    # Epochs and producers

    def check_epochs(self) -> None:
        log = self._log
        expected: list[tuple[int, int]] = []
        for header in self._all:
            if header.last_offset >= log.log_start_offset and (not expected or header.leader_epoch > expected[-1][0]):
                expected.append((header.leader_epoch, max(header.base_offset, log.log_start_offset)))
        known = list(log.epochs.entries)
        rest = known[len(expected) :]
        begun = [(epoch, start) for epoch, start in rest if start == log.log_end_offset]
        if known[: len(expected)] != expected or rest != begun or len(rest) > 1:
            self._violated("epochs-fit-log", f"the cache has {known}, the batches have {expected}")

    def check_producers(self, wall_ms: int) -> None:
        log = self._log
        batches: defaultdict[int, list[BatchHeader]] = defaultdict(list)
        whole = self._without_gaps()
        for header in whole:
            if header.producer_id != NO_PRODUCER_ID:
                batches[header.producer_id].append(header)
        for producer_id, written in batches.items():
            state = log.producers.get(producer_id)
            last = written[-1]
            if state is None:
                may_be_forgotten = wall_ms - last.max_timestamp_ms >= log.config.producer_id_expiration_ms
                if not may_be_forgotten:
                    self._violated(
                        "producers-fit-log", f"producer {producer_id} is unknown, and its last batch is {last}"
                    )
                continue
            expected = [header for header in written if header.producer_epoch == last.producer_epoch][
                -BATCHES_REMEMBERED:
            ]
            if not _is_end_of(state, expected):
                self._violated(
                    "producers-fit-log",
                    f"the state of producer {producer_id} is {state}, its last batches are {expected}",
                )
        self._check_remembered(max([log.log_start_offset, *(header.base_offset for header in whole[:1])]))

    def _without_gaps(self) -> list[BatchHeader]:
        """Return the headers above the log start and after the last gap in the offsets.

        There is a gap if a power cut has restored some of the deleted segments.
        """
        headers = [header for header in self._all if header.last_offset >= self._log.log_start_offset]
        starts = [
            index + 1 for index, (one, other) in enumerate(pairwise(headers)) if one.last_offset + 1 < other.base_offset
        ]
        return headers[max(starts, default=0) :]

    def _check_remembered(self, from_offset: int) -> None:
        """Check that the log has all batches of the producer states from an offset on; it may lack earlier batches."""
        written = {(header.producer_id, header.base_offset) for header in self._all}
        for producer_id, state in self._log.producers.states.items():
            for batch in state.batches:
                if batch.base_offset >= from_offset and (producer_id, batch.base_offset) not in written:
                    self._violated(
                        "producers-fit-log", f"the log has no batch of producer {producer_id} at {batch.base_offset}"
                    )

    # Recovery

    def check_recovery(self, wall_ms: int) -> None:
        """Recover the log in a copy of its files, and compare the two."""
        log = self._log
        copy = copy_crashed_log(log)
        again = UnifiedLog.open(
            copy, log.directory, log.config, wall_ms,
            recovery_point=log.recovery_point, log_start_offset=log.log_start_offset,
        )  # fmt: skip
        before = log.log_start_offset, log.log_end_offset, _with_records(log)
        after = again.log_start_offset, again.log_end_offset, _with_records(again)
        if before != after:
            self._violated("recovery-keeps", f"start, end and epochs are {before}, after a crash {after}")
        for producer_id, state in again.producers.states.items():
            known = log.producers.get(producer_id)
            if known is not None and known.batches[-1].last_offset < log.log_start_offset:
                continue  # as in Kafka, recovery does not read batches below the log start
            if known is None or (known.epoch, known.batches[-1]) != (state.epoch, state.batches[-1]):
                self._violated(
                    "recovery-keeps", f"the state of producer {producer_id} is {known}, after a crash {state}"
                )
        for producer_id in log.producers.states.keys() - again.producers.states.keys():
            last = log.producers.states[producer_id].batches[-1]
            is_fresh = wall_ms - last.timestamp_ms < log.config.producer_id_expiration_ms
            if is_fresh and last.base_offset >= log.log_start_offset:
                self._violated("recovery-keeps", f"producer {producer_id} is lost in a crash: {last}")
        check_recovered(self._name, again, log.recovery_point, wall_ms)


def _finished(steps: Steps[_T]) -> tuple[_T, int]:
    """Run all steps, and return the result and the number of steps before the last one."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, count
        count += 1


def _with_records(log: UnifiedLog) -> list[tuple[int, int]]:
    """Return the epochs that have records. As in Kafka, the load of a log drops other epochs (`LogLoader.load`)."""
    return [(epoch, start_offset) for epoch, start_offset in log.epochs.entries if start_offset < log.log_end_offset]


def _largest_timestamps(headers: list[tuple[int, BatchHeader]]) -> Iterator[tuple[int, int]]:
    """Yield last offset and largest timestamp of each batch with a larger timestamp than all previous batches."""
    largest_ms = NO_TIMESTAMP
    for _, header in headers:
        if header.max_timestamp_ms > largest_ms:
            largest_ms = header.max_timestamp_ms
            yield header.last_offset, largest_ms


def _is_end_of(state: ProducerState, written: list[BatchHeader]) -> bool:
    """Whether a producer state has the producer's last batches without a gap.

    As in Kafka, the state may also have batches that retention has deleted.
    """
    remembered = [
        (batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset)
        for batch in state.batches
        if batch.base_offset >= written[0].base_offset
    ]
    expected = [
        (header.base_sequence, header.last_sequence, header.base_offset, header.last_offset) for header in written
    ]
    is_same_epoch = state.epoch == written[-1].producer_epoch
    return is_same_epoch and bool(remembered) and remembered == expected[-len(remembered) :]
