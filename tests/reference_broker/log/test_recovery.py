"""Opening a log after a crash: tails torn at every byte, flipped bits, lost and foreign files, and what is trusted."""

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.unified_log import UnifiedLog
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
"""Base offset and leader epoch lie before the checksum."""


def written(config: LogConfig = CONFIG) -> MemoryDisk:
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, DIRECTORY, config, NOW_MS)
    for epoch, batch in enumerate(BATCHES):
        log.append(batch, leader_epoch=epoch, now_ms=NOW_MS)
    return disk


def crashed(disk: MemoryDisk, recovery_point: int = 0, config: LogConfig = CONFIG) -> UnifiedLog:
    return UnifiedLog.open(disk, DIRECTORY, config, NOW_MS, recovery_point=recovery_point)


def path(base_offset: int, suffix: str = ".log") -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def check_agrees(log: UnifiedLog, disk: MemoryDisk, batches: int) -> None:
    """Everything in the log tells of the first so many batches and of nothing else."""
    end = LAST_OFFSETS[batches - 1] + 1 if batches else 0
    assert log.log_end_offset == end
    assert len(disk.files[path(0)]) == log.size_bytes == (ENDS[batches - 1] if batches else 0)
    assert offsets(log.read(0, 10_000, end)) == list(range(end))
    assert log.epochs.entries == tuple((epoch, LAST_OFFSETS[epoch - 1] + 1 if epoch else 0) for epoch in range(batches))
    producer = log.producers.get(9)
    assert (producer.batches[-1].last_sequence if producer else None) == [None, None, 2, 2, 3, 3][batches]
    assert log.append(plain(), leader_epoch=9, now_ms=NOW_MS).base_offset == end


def test_a_tail_torn_at_any_byte_is_cut_at_the_last_whole_batch():
    for size in range(ENDS[-1] + 1):
        disk = written()
        del disk.files[path(0)][size:]
        check_agrees(crashed(disk), disk, sum(1 for end in ENDS if end <= size))


def test_a_flipped_bit_anywhere_ends_the_log_before_its_batch():
    for position in range(ENDS[-1]):
        disk = written()
        disk.files[path(0)][position] ^= 0x40
        damaged = sum(1 for end in ENDS if end <= position)
        start = ENDS[damaged - 1] if damaged else 0
        log = crashed(disk)
        if position - start in UNCHECKED:
            assert log.log_end_offset >= (LAST_OFFSETS[damaged - 1] + 1 if damaged else 0)
        else:
            check_agrees(log, disk, damaged)


@pytest.mark.parametrize(
    "garbage", [b"\0", b"\0" * 5000, b"\xff" * 100, BATCHES[0], bytes(8) + b"\x7f\xff\xff\xff" + bytes(90)]
)
def test_garbage_behind_the_end_is_cut_off(garbage):
    disk = written()
    disk.files[path(0)] += garbage
    check_agrees(crashed(disk), disk, len(BATCHES))


def test_a_torn_tail_is_never_written_behind_even_if_the_last_stop_is_said_to_be_clean():
    for size in range(ENDS[-1] + 1):
        disk = written()
        crashed(disk).close()
        del disk.files[path(0)][size:]
        log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS, clean=True)
        end = log.log_end_offset
        assert end == (0, 2, 5, 6, 7, 11)[sum(1 for end in ENDS if end <= size)]
        assert log.append(plain(), leader_epoch=9, now_ms=NOW_MS).base_offset == end
        assert offsets(log.read(0, 10_000, end + 1)) == list(range(end + 1))


def test_segments_behind_a_torn_one_go():
    disk = written()
    log = crashed(disk)
    log.roll(NOW_MS)
    log.append(plain(), leader_epoch=5, now_ms=NOW_MS)
    del disk.files[path(0)][-1:]
    check_agrees(crashed(disk), disk, len(BATCHES) - 1)
    assert not disk.exists(path(LAST_OFFSETS[-1] + 1, ".index"))
    snapshots = [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    assert snapshots == [f"{LAST_OFFSETS[-2] + 1:020d}.snapshot"]


def test_below_the_recovery_point_nothing_is_read_again():
    disk = written()
    log = crashed(disk)
    log.roll(NOW_MS)
    log.append(plain(), leader_epoch=5, now_ms=NOW_MS)
    log.flush()
    disk.files[path(0)][70] ^= 1
    assert crashed(disk, log.recovery_point).log_end_offset == log.log_end_offset
    assert crashed(disk, log.recovery_point - 1).log_end_offset == log.log_end_offset
    assert crashed(disk, LAST_OFFSETS[-1]).log_end_offset == 0


def test_a_clean_log_is_opened_without_reading_its_inactive_segments():
    config = LogConfig(index_interval_bytes=50, segment_bytes=300)
    disk = written(config)
    log = crashed(disk, config=config)
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


def test_a_lost_epoch_checkpoint_is_made_again_from_all_segments():
    disk = written(LogConfig(segment_bytes=200))
    log = crashed(disk, config=LogConfig(segment_bytes=200))
    entries = log.epochs.entries
    log.flush()
    disk.delete(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert crashed(disk, log.recovery_point).epochs.entries == entries
    disk.replace(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n2\n0 0\n")
    assert crashed(disk, log.recovery_point).epochs.entries == entries


def test_files_that_no_segment_owns_go():
    disk = written()
    for name in (
        f"{77:020d}.index",
        f"{77:020d}.timeindex",
        f"{0:020d}.log.deleted",
        f"{0:020d}.index.swap",
        "x.cleaned",
    ):
        disk.append(f"{DIRECTORY}/{name}", b"x")
    disk.append(f"{DIRECTORY}/partition.metadata", b"version: 0\n")
    crashed(disk)
    assert disk.list(DIRECTORY) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{LAST_OFFSETS[-1] + 1:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_a_log_that_ends_below_its_start_begins_again_there():
    disk = written()
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS, log_start_offset=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert disk.exists(path(100))
    assert not disk.exists(path(0))


def test_the_recovery_point_never_lies_beyond_the_end():
    assert crashed(written(), 10_000).recovery_point == LAST_OFFSETS[-1] + 1
    assert crashed(written()).recovery_point == 0


def test_epochs_that_a_log_start_took_are_known_again_where_the_start_goes_back():
    config = LogConfig(segment_bytes=200)
    disk = written(config)
    log = crashed(disk, config=config)
    entries = log.epochs.entries
    log.flush()
    log.maybe_increment_log_start_offset(LAST_OFFSETS[1] + 1)
    assert log.epochs.entries == entries[2:]
    assert crashed(disk, log.recovery_point, config).epochs.entries == entries  # nobody wrote the new start down
