"""Rolls of segments, flushes, retention, and defaults of `LogConfig`."""

from dataclasses import fields, replace

import pytest

from reference_broker.core.configuration.keys import TOPIC_CONFIG_KEYS
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import NEVER, LogConfig
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import BatchHeader
from tests.reference_broker.log.batches import NOW_MS, batch_with_timestamps, encode_batch, plain

DIRECTORY = "orders-0"
DAY_MS = 86_400_000
ONE_SECOND = LogConfig(retention_ms=-1, segment_ms=1000)


class FlushRecordingDisk(MemoryDisk):
    """A disk that records the paths of flushed files."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[str] = []

    def flush(self, *paths: str) -> None:
        super().flush(*paths)
        self.flushed += paths


def segments_after(config: LogConfig, *appends: tuple[bytes, int]) -> list[int]:
    """Append batches, each at a time of the clock, and return the base offsets of the segments."""
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, DIRECTORY, config, NOW_MS)
    for batch, now_ms in appends:
        log.append(batch, leader_epoch=0, now_ms=now_ms)
    return [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")]


def test_roll_by_size():
    size = len(plain())
    assert segments_after(LogConfig(segment_bytes=2 * size), *[(plain(), NOW_MS)] * 5) == [0, 2, 4]
    assert segments_after(LogConfig(segment_bytes=2 * size - 1), *[(plain(), NOW_MS)] * 3) == [0, 1, 2]


def test_roll_by_the_timestamps_of_the_records():
    """The first batch of the segment is compared with the batch to append; the clock is not used."""
    assert segments_after(ONE_SECOND, (plain(), NOW_MS), (plain(timestamp_ms=NOW_MS + 1000), NOW_MS)) == [0]
    assert segments_after(ONE_SECOND, (plain(), NOW_MS), (plain(timestamp_ms=NOW_MS + 1001), NOW_MS)) == [0, 1]
    assert segments_after(ONE_SECOND, (plain(), NOW_MS), (plain(), NOW_MS + DAY_MS)) == [0]


def test_roll_by_the_clock_if_records_have_no_timestamps():
    timeless = encode_batch(batch_with_timestamps([-1]))
    assert segments_after(ONE_SECOND, (timeless, NOW_MS), (timeless, NOW_MS + 1000)) == [0]
    assert segments_after(ONE_SECOND, (timeless, NOW_MS), (timeless, NOW_MS + 1001)) == [0, 1]


def test_first_timestamp_of_a_segment_is_restored_after_a_restart():
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, DIRECTORY, ONE_SECOND, NOW_MS)
    log.append(plain(), leader_epoch=0, now_ms=NOW_MS)
    log.close()
    log = UnifiedLog.open(disk, DIRECTORY, ONE_SECOND, NOW_MS, clean=True)
    log.append(plain(timestamp_ms=NOW_MS + 1001), leader_epoch=0, now_ms=NOW_MS)
    assert disk.exists(f"{DIRECTORY}/{1:020d}.log")


@pytest.mark.parametrize(("index_bytes", "per_segment"), [(16, 1), (36, 3)])
def test_roll_by_a_full_index(index_bytes, per_segment):
    """The time index is full first: its last entry, of 12 bytes, is reserved for the end of the segment."""
    config = LogConfig(index_interval_bytes=0, segment_index_bytes=index_bytes)
    batches = [(plain(timestamp_ms=NOW_MS + number), NOW_MS) for number in range(9)]
    assert segments_after(config, *batches)[:3] == [0, per_segment, 2 * per_segment]


def test_roll_before_a_relative_offset_overflows():
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    segment = LogSegment.create(disk, DIRECTORY, 100, index_interval_bytes=4096, now_ms=NOW_MS)
    last = BatchHeader.parse(plain())._replace(base_offset=100 + 2**31 - 1)
    assert not segment.is_full(last, segment_bytes=2**30, index_bytes=2**20)
    assert segment.is_full(last._replace(base_offset=100 + 2**31), segment_bytes=2**30, index_bytes=2**20)


def test_roll_flushes_the_old_segment_and_flush_flushes_the_active_one():
    disk = FlushRecordingDisk()
    log = UnifiedLog.open(disk, DIRECTORY, LogConfig(), NOW_MS)
    log.append(plain(), leader_epoch=0, now_ms=NOW_MS)
    assert (disk.flushed, log.recovery_point) == ([], 0)
    log.roll(NOW_MS)
    log.append(plain(), leader_epoch=0, now_ms=NOW_MS)
    names = (f"{0:020d}.log", f"{0:020d}.timeindex", f"{1:020d}.snapshot", "leader-epoch-checkpoint")
    assert {f"{DIRECTORY}/{name}" for name in names} == set(disk.flushed)
    assert log.recovery_point == 1
    disk.flushed.clear()
    log.flush()
    assert disk.flushed == [f"{DIRECTORY}/{1:020d}.log"]
    assert log.recovery_point == 2
    disk.flushed.clear()
    log.flush()
    assert disk.flushed == []
    log.append(plain(), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    assert disk.flushed == [f"{DIRECTORY}/{1:020d}.log"]


def test_flush_messages_limits_the_unflushed_records():
    log = UnifiedLog.open(MemoryDisk(), DIRECTORY, LogConfig(flush_messages=3), NOW_MS)
    recovery_points = []
    for _ in range(4):
        log.append(plain(2), leader_epoch=0, now_ms=NOW_MS)
        recovery_points.append(log.recovery_point)
    assert recovery_points == [0, 4, 4, 8]


def test_segment_without_timestamps_expires_by_the_clock():
    config = replace(ONE_SECOND, segment_ms=NEVER, retention_ms=1000)
    log = UnifiedLog.open(MemoryDisk(), DIRECTORY, config, NOW_MS)
    log.append(encode_batch(batch_with_timestamps([-1])), leader_epoch=0, now_ms=NOW_MS)
    log.apply_retention(NOW_MS + 1000, high_watermark=1)
    log.delete_below_start()
    assert log.log_start_offset == 0
    log.apply_retention(NOW_MS + 1001, high_watermark=1)
    log.delete_below_start()
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (1, 1, 0)


def test_retention_keeps_segments_above_the_high_watermark():
    config = LogConfig(segment_bytes=len(plain()), retention_ms=0)
    log = UnifiedLog.open(MemoryDisk(), DIRECTORY, config, NOW_MS)
    for _ in range(4):
        log.append(plain(), leader_epoch=0, now_ms=NOW_MS)
    log.apply_retention(NOW_MS + 1, high_watermark=2)
    log.delete_below_start()
    assert log.log_start_offset == 2


def test_compacted_topic_keeps_segments_above_the_log_start_offset():
    config = LogConfig(segment_bytes=len(plain()), retention_ms=0, cleanup_policy=frozenset({"compact"}))
    log = UnifiedLog.open(MemoryDisk(), DIRECTORY, config, NOW_MS)
    for _ in range(4):
        log.append(plain(), leader_epoch=0, now_ms=NOW_MS)
    log.maybe_increment_log_start_offset(2)
    log.apply_retention(NOW_MS + DAY_MS, high_watermark=4)
    log.delete_below_start()
    assert (log.log_start_offset, log.size_bytes) == (2, 2 * len(plain()))


def test_defaults_equal_those_of_the_topic_properties():
    for field in fields(LogConfig):
        key = TOPIC_CONFIG_KEYS.get(field.name.replace("_", "."))
        if key is not None and field.name not in {"cleanup_policy", "compression_type"}:
            assert field.default == key.parse(key.default or ""), field.name
    assert (LogConfig().compression_type, TOPIC_CONFIG_KEYS["compression.type"].default) == (None, "producer")
    assert LogConfig().cleanup_policy == {TOPIC_CONFIG_KEYS["cleanup.policy"].default}
