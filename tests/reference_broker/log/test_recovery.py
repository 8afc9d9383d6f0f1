"""Log recovery after a crash: tails torn at every byte, flipped bits, missing and stray files."""

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.simulation.disk import SimulatedDisk
from tests.reference_broker.log.batches import NOW_MS, Compression, idempotent, offsets, plain

DIRECTORY = "orders-0"
CONFIG = LogConfig(index_interval_bytes=50)
BATCHES = (
    plain(2),
    idempotent(9, 0, 0, 3),
    plain(1, compression=Compression.GZIP),
    idempotent(9, 0, 3),
    plain(4, NOW_MS + 9),
)
LAST_OFFSETS = (1, 4, 5, 6, 10)
ENDS = tuple(sum(map(len, BATCHES[: number + 1])) for number in range(len(BATCHES)))
UNCHECKED = {*range(8), *range(12, 16)}
"""Positions of base offset and leader epoch, which the checksum does not cover."""


def disk_with_log(config: LogConfig = CONFIG) -> MemoryDisk:
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, DIRECTORY, config, NOW_MS)
    for epoch, batch in enumerate(BATCHES):
        log.append(batch, leader_epoch=epoch, now_ms=NOW_MS)
    return disk


def recover(disk: MemoryDisk, recovery_point: int = 0, config: LogConfig = CONFIG) -> UnifiedLog:
    return UnifiedLog.open(disk, DIRECTORY, config, NOW_MS, recovery_point=recovery_point)


def path(base_offset: int, suffix: str = ".log") -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def check_agrees(log: UnifiedLog, disk: MemoryDisk, batches: int) -> None:
    """Assert that records, epochs and producer state are those of the first `batches` batches."""
    end = LAST_OFFSETS[batches - 1] + 1 if batches else 0
    assert log.log_end_offset == end
    assert len(disk.files[path(0)]) == log.size_bytes == (ENDS[batches - 1] if batches else 0)
    assert offsets(log.read(0, 10_000, end)) == list(range(end))
    assert log.epochs.entries == tuple((epoch, LAST_OFFSETS[epoch - 1] + 1 if epoch else 0) for epoch in range(batches))
    producer = log.producers.get(9)
    assert (producer.batches[-1].last_sequence if producer else None) == [None, None, 2, 2, 3, 3][batches]
    assert log.append(plain(), leader_epoch=9, now_ms=NOW_MS).base_offset == end


def test_tail_torn_at_any_byte_is_truncated_to_the_last_complete_batch():
    for size in range(ENDS[-1] + 1):
        disk = disk_with_log()
        del disk.files[path(0)][size:]
        check_agrees(recover(disk), disk, sum(1 for end in ENDS if end <= size))


def test_flipped_bit_truncates_the_log_before_its_batch():
    for position in range(ENDS[-1]):
        disk = disk_with_log()
        disk.files[path(0)][position] ^= 0x40
        damaged = sum(1 for end in ENDS if end <= position)
        start = ENDS[damaged - 1] if damaged else 0
        log = recover(disk)
        if position - start in UNCHECKED:
            assert log.log_end_offset >= (LAST_OFFSETS[damaged - 1] + 1 if damaged else 0)
        else:
            check_agrees(log, disk, damaged)


@pytest.mark.parametrize(
    "garbage", [b"\0", b"\0" * 5000, b"\xff" * 100, BATCHES[0], bytes(8) + b"\x7f\xff\xff\xff" + bytes(90)]
)
def test_garbage_after_the_last_batch_is_truncated(garbage):
    disk = disk_with_log()
    disk.files[path(0)] += garbage
    check_agrees(recover(disk), disk, len(BATCHES))


def test_torn_tail_is_truncated_even_after_a_clean_shutdown():
    for size in range(ENDS[-1] + 1):
        disk = disk_with_log()
        recover(disk).close()
        del disk.files[path(0)][size:]
        log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS, clean=True)
        end = log.log_end_offset
        assert end == (0, 2, 5, 6, 7, 11)[sum(1 for end in ENDS if end <= size)]
        assert log.append(plain(), leader_epoch=9, now_ms=NOW_MS).base_offset == end
        assert offsets(log.read(0, 10_000, end + 1)) == list(range(end + 1))


def test_segments_after_a_torn_segment_are_deleted():
    disk = disk_with_log()
    log = recover(disk)
    log.roll(NOW_MS)
    log.append(plain(), leader_epoch=5, now_ms=NOW_MS)
    del disk.files[path(0)][-1:]
    check_agrees(recover(disk), disk, len(BATCHES) - 1)
    assert not disk.exists(path(LAST_OFFSETS[-1] + 1, ".index"))
    snapshots = [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    assert snapshots == [f"{LAST_OFFSETS[-2] + 1:020d}.snapshot"]


def test_segments_below_the_recovery_point_are_not_recovered():
    disk = disk_with_log()
    log = recover(disk)
    log.roll(NOW_MS)
    log.append(plain(), leader_epoch=5, now_ms=NOW_MS)
    log.flush()
    disk.files[path(0)][70] ^= 1
    assert recover(disk, log.recovery_point).log_end_offset == log.log_end_offset
    assert recover(disk, log.recovery_point - 1).log_end_offset == log.log_end_offset
    assert recover(disk, LAST_OFFSETS[-1]).log_end_offset == 0


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_below_the_recovery_point_that_were_lost_and_rebuilt_are_durable(suffix):
    disk = SimulatedDisk()
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS)
    log.append(plain(2), leader_epoch=0, now_ms=NOW_MS)
    log.append(plain(2), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    log.flush()
    disk.delete(path(0, suffix))
    reopened = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS, recovery_point=log.recovery_point)
    reopened.close()
    assert not [name for name, file in disk.files.items() if name.endswith("index") and not file.is_durable]


def test_clean_log_is_opened_without_reading_inactive_segments():
    config = LogConfig(index_interval_bytes=50, segment_bytes=300)
    disk = disk_with_log(config)
    log = recover(disk, config=config)
    for _ in range(10):
        log.append(plain(2), leader_epoch=9, now_ms=NOW_MS)
    log.close()
    bases = [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")]
    assert len(bases) > 2
    read = []

    class Watched(MemoryDisk):
        def read(self, path: str, position: int, length: int) -> bytes:
            read.append(path)
            return super().read(path, position, length)

    watched = Watched()
    watched.files, watched._directories = disk.files, disk._directories
    log = UnifiedLog.open(watched, DIRECTORY, config, NOW_MS, clean=True)
    assert log.log_end_offset == LAST_OFFSETS[-1] + 21
    assert {name for name in read if name.endswith(".log")} == {path(bases[-1])}


def test_missing_epoch_checkpoint_is_rebuilt_from_all_segments():
    disk = disk_with_log(LogConfig(segment_bytes=200))
    log = recover(disk, config=LogConfig(segment_bytes=200))
    entries = log.epochs.entries
    log.flush()
    disk.delete(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert recover(disk, log.recovery_point).epochs.entries == entries
    disk.replace(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n2\n0 0\n")
    assert recover(disk, log.recovery_point).epochs.entries == entries


def test_files_without_a_segment_are_deleted():
    disk = disk_with_log()
    for name in (
        f"{77:020d}.index",
        f"{77:020d}.timeindex",
        f"{0:020d}.log.deleted",
        f"{0:020d}.index.swap",
        "x.cleaned",
    ):
        disk.append(f"{DIRECTORY}/{name}", b"x")
    disk.append(f"{DIRECTORY}/partition.metadata", b"version: 0\n")
    recover(disk)
    assert disk.list(DIRECTORY) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{LAST_OFFSETS[-1] + 1:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_log_that_ends_below_its_start_offset_is_emptied_and_restarts_at_that_offset():
    disk = disk_with_log()
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS, log_start_offset=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert disk.exists(path(100))
    assert not disk.exists(path(0))


def test_recovery_point_never_exceeds_the_log_end_offset():
    assert recover(disk_with_log(), 10_000).recovery_point == LAST_OFFSETS[-1] + 1
    assert recover(disk_with_log()).recovery_point == 0


def test_deleted_epochs_are_restored_if_the_log_start_offset_is_restored():
    config = LogConfig(segment_bytes=200)
    disk = disk_with_log(config)
    log = recover(disk, config=config)
    entries = log.epochs.entries
    log.flush()
    log.maybe_increment_log_start_offset(LAST_OFFSETS[1] + 1)
    assert log.epochs.entries == entries[2:]
    assert (
        recover(disk, log.recovery_point, config).epochs.entries == entries
    )  # the new log start offset was not checkpointed
