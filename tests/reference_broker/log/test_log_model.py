"""Model-based test of the log: it has the same records as a list.

Rules: appends, rolls, flushes, DeleteRecords, retention, truncation, clean shutdowns, damage to files that can be
rebuilt from the records, crashes that truncate unflushed data, reads, and lookups by timestamp and epoch.
"""

from dataclasses import dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import OffsetOutOfRangeError
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.steps import finish
from tests.reference_broker.log.batches import (
    NOW_MS,
    Compression,
    batch_with_timestamps,
    decode_batches,
    encode_batch,
    offsets,
)

DIRECTORY = "orders-0"
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100, max_message_bytes=900, retention_ms=-1)


@dataclass(frozen=True)
class Expected:
    offset: int
    timestamp_ms: int
    epoch: int
    segment: int
    """Base offset of the record's segment. It is taken from the log, because the model has no segments."""


class LogMachine(RuleBasedStateMachine):
    """State machine of a log and of the expected records, the list `self.records`."""

    @initialize()
    def open_empty(self) -> None:
        self.disk = MemoryDisk()
        self.records: list[Expected] = []
        self.start = self.end = self.flushed = self.epoch = 0
        self.log = UnifiedLog.open(self.disk, DIRECTORY, CONFIG, NOW_MS)

    def segment_bases(self) -> list[int]:
        return [int(name[:20]) for name in self.disk.list(DIRECTORY) if name.endswith(".log")]

    @rule(
        ages_ms=st.lists(st.integers(0, 50), min_size=1, max_size=8),
        size=st.integers(0, 60),
        compression=st.sampled_from(Compression),
        new_epoch=st.booleans(),
    )
    def append(self, ages_ms: list[int], size: int, compression: Compression, new_epoch: bool) -> None:
        self.epoch += new_epoch
        timestamps_ms = [NOW_MS - age_ms for age_ms in ages_ms]
        batch = encode_batch(replace(batch_with_timestamps(timestamps_ms, size), compression=compression))
        appended = self.log.append(batch, leader_epoch=self.epoch, now_ms=NOW_MS)
        assert (appended.base_offset, appended.last_offset) == (self.end, self.end + len(ages_ms) - 1)
        base = self.segment_bases()[-1]
        for timestamp_ms in timestamps_ms:
            self.records.append(Expected(self.end, timestamp_ms, self.epoch, base))
            self.end += 1

    @rule()
    def roll(self) -> None:
        if self.segment_bases()[-1] < self.end:
            self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = self.start + int(share * (self.end - self.start))
        self.log.maybe_increment_log_start_offset(offset)
        self._set_start(offset)

    def segments(self) -> list[tuple[int, int, int]]:
        """Return base offset, size and max timestamp of each segment with offsets above the log start offset."""
        bases = self.segment_bases()
        found = []
        for base, next_base in zip(bases, [*bases[1:], None], strict=True):
            timestamps_ms = [record.timestamp_ms for record in self.records if record.segment == base]
            if next_base is None or next_base > self.start:
                found.append((base, self.disk.size(f"{DIRECTORY}/{base:020d}.log"), max(timestamps_ms, default=0)))
        return found

    def _retain(self, config: LogConfig, expected: list[int]) -> None:
        """Apply the retention of a configuration, and assert that segments with the expected base offsets remain."""
        self.log.config = config
        self.log.apply_retention(NOW_MS, self.end)
        self.log.delete_below_start()
        self.log.config = CONFIG
        assert self.segment_bases() == (expected or [self.end])
        self._set_start(max(self.start, self.segment_bases()[0]))

    @rule(retention_bytes=st.integers(0, 3000))
    def retain_by_size(self, retention_bytes: int) -> None:
        segments = self.segments()
        total = sum(size for _, size, _ in segments)
        while segments and segments[0][1] and total - segments[0][1] >= retention_bytes:
            total -= segments.pop(0)[1]
        self._retain(replace(CONFIG, retention_bytes=retention_bytes), [base for base, *_ in segments])

    @rule(retention_ms=st.integers(0, 60))
    def retain_by_time(self, retention_ms: int) -> None:
        segments = self.segments()
        while segments and segments[0][1] and NOW_MS - segments[0][2] > retention_ms:
            segments.pop(0)
        self._retain(replace(CONFIG, retention_ms=retention_ms), [base for base, *_ in segments])

    @rule(back=st.integers(1, 10))
    def truncate(self, back: int) -> None:
        offset = max(self.start, self.end - back)
        self.log.truncate_to(offset, NOW_MS)
        self._set_end(self.log.log_end_offset)
        assert self.end <= offset
        self._set_start(min(self.start, self.end))
        self.flushed = min(self.flushed, self.end)

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self._reopen(clean=True)
        self.flushed = self.end

    @rule(damage=st.sampled_from(["delete", "cut", "empty", "garbage"]), share=st.floats(0, 1), clean=st.booleans())
    def stop_lose_a_derived_file_and_start(self, damage: str, share: float, clean: bool) -> None:
        if clean:
            self.log.close()
        names = [name for name in self.disk.list(DIRECTORY) if name.endswith(("index", ".snapshot", "checkpoint"))]
        assert names
        path = f"{DIRECTORY}/{names[int(share * (len(names) - 1))]}"
        content = self.disk.files[path]
        match damage:
            case "delete":
                del self.disk.files[path]
            case "cut":
                del content[int(share * len(content)) :]
            case "empty":
                content.clear()
            case "garbage":
                content[:] = bytes(byte ^ 0x5A for byte in content)
        self._reopen(clean=clean)
        self.flushed = self.end if clean else self.flushed

    @rule(lost=st.floats(0, 1))
    def crash_with_a_torn_tail(self, lost: float) -> None:
        """Truncate the last segment at any position after the flushed data."""
        base = self.segment_bases()[-1]
        path = f"{DIRECTORY}/{base:020d}.log"
        whole = bytes(self.disk.files[path])
        batches = [batch for batch in decode_batches(whole) if batch.base_offset >= self.flushed]
        durable = len(whole)
        if batches:
            durable = next(
                position
                for position in range(len(whole))
                if int.from_bytes(whole[position : position + 8], "big") == batches[0].base_offset
                and len(list(decode_batches(whole[:position]))) + len(batches) == len(list(decode_batches(whole)))
            )
        kept = durable + int(lost * (len(whole) - durable))
        del self.disk.files[path][kept:]
        survivors = offsets(whole[:kept])
        self._reopen(clean=False)
        self._set_end(max(survivors[-1] + 1 if survivors else base, self.start))
        assert self.end >= self.flushed

    def _reopen(self, *, clean: bool) -> None:
        recovery_point = self.end if clean else self.log.recovery_point
        self.log = UnifiedLog.open(
            self.disk,
            DIRECTORY,
            CONFIG,
            NOW_MS,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=self.start,
        )

    def _set_start(self, offset: int) -> None:
        self.start = offset

    def _set_end(self, offset: int) -> None:
        self.end = offset
        self.records = [record for record in self.records if record.offset < offset]

    def _kept(self) -> list[Expected]:
        return [record for record in self.records if record.offset >= self.start]

    @invariant()
    def bounds_are_equal(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.flushed <= self.end

    @invariant()
    def consecutive_reads_return_every_record(self) -> None:
        offset, found = self.start, []
        while offset < self.end:
            data = self.log.read(offset, 150, self.end)
            found += [record for batch in decode_batches(data) for record in batch.records if record.offset >= offset]
            offset = found[-1].offset + 1
        assert [(record.offset, record.timestamp_ms) for record in found] == [
            (record.offset, record.timestamp_ms) for record in self._kept()
        ]

    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 2000), below=st.integers(0, 20), whole_first=st.booleans())
    def read(self, share: float, max_bytes: int, below: int, whole_first: bool) -> None:
        offset = self.start + int(share * (self.end - self.start))
        end = max(self.end - below, self.start)
        data = self.log.read(offset, max_bytes, end, whole_first_batch=whole_first)
        batches = list(decode_batches(data))
        assert sum(len(encode_batch(batch)) for batch in batches if batch.compression is Compression.NONE) <= len(data)
        assert len(data) <= max_bytes or (whole_first and len(batches) == 1)
        found = offsets(data)
        if found:
            assert found[0] <= offset <= found[-1]
            assert found == list(range(found[0], found[-1] + 1))
            assert found[-1] < max(end, batches[0].next_offset)
        else:
            assert offset >= end or not whole_first or self._batch_reaches_beyond(offset, end)

    def _batch_reaches_beyond(self, offset: int, end: int) -> bool:
        """Whether `end` is inside the batch that contains `offset`. A high watermark is never inside a batch."""
        data = self.log.read(offset, 0, self.end)
        return end < next(iter(decode_batches(data))).next_offset

    @precondition(lambda self: self.records)
    @rule(age_ms=st.integers(-2, 52))
    def look_up_by_time(self, age_ms: int) -> None:
        timestamp_ms = NOW_MS - age_ms
        expected = next((record for record in self._kept() if record.timestamp_ms >= timestamp_ms), None)
        found = finish(self.log.offset_for_timestamp(timestamp_ms))
        assert found == (expected and (expected.timestamp_ms, expected.offset, expected.epoch))

    @precondition(lambda self: self.records)
    @rule()
    def look_up_max_timestamp(self) -> None:
        found = finish(self.log.max_timestamp())
        kept = self._kept()
        if kept and self.segment_bases()[0] == self.start:
            latest = max(kept, key=lambda record: (record.timestamp_ms, -record.offset))
            assert found == (latest.timestamp_ms, latest.offset, latest.epoch)

    @rule(epoch=st.integers(-1, 30))
    def look_up_an_epoch(self, epoch: int) -> None:
        known = self._kept()
        epochs = sorted({record.epoch for record in known})
        if not epochs or epoch == -1 or epoch > epochs[-1]:
            assert self.log.end_offset_for_epoch(epoch) == (-1, -1) or not epochs
            return
        above = next((record.offset for record in known if record.epoch > epoch), self.end)
        floor = max((found for found in epochs if found <= epoch), default=epoch)
        assert self.log.end_offset_for_epoch(epoch) == (floor, above)

    @rule()
    def read_outside(self) -> None:
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, 100, self.end)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=150, stateful_step_count=25)
