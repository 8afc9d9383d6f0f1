"""Logs of followers: byte-identical to the leader's, even if fetch responses are truncated anywhere."""

from itertools import count

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import AppendError
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import BatchHeader
from tests.reference_broker.log.batches import NOW_MS, Compression, decode_batches, idempotent, offsets, plain

DIRECTORY = "orders-0"
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


def open_log(disk: MemoryDisk | None = None, config: LogConfig = CONFIG) -> UnifiedLog:
    return UnifiedLog.open(disk or MemoryDisk(), DIRECTORY, config, NOW_MS)


def appended(log: UnifiedLog, *batches: bytes, epoch: int = 0) -> UnifiedLog:
    for batch in batches:
        log.append(batch, leader_epoch=epoch, now_ms=NOW_MS)
    return log


def everything(log: UnifiedLog) -> bytes:
    data, offset = b"", log.log_start_offset
    while offset < log.log_end_offset:
        data += log.read(offset, 10_000, log.log_end_offset)
        offset = next(reversed(list(decode_batches(data)))).next_offset
    return data


def follow(follower: UnifiedLog, records: bytes, leader_epoch: int = 100) -> None:
    follower.append_as_follower(records, leader_epoch=leader_epoch, now_ms=NOW_MS)


def state(log: UnifiedLog) -> tuple[object, ...]:
    return log.log_start_offset, log.log_end_offset, log.epochs.entries, everything(log), log.producers.snapshot()


@settings(max_examples=60)
@given(
    batches=st.lists(
        st.tuples(
            st.sampled_from(["plain", "idempotent", "later", "roll"]),
            st.integers(1, 5),
            st.sampled_from(Compression),
            st.integers(0, 2),
        ),
        max_size=30,
    ),
    append_time=st.booleans(),
    response_sizes=st.lists(st.integers(0, 1500), min_size=1, max_size=10),
)
def test_follower_has_the_same_files_as_its_leader(batches, append_time, response_sizes):
    config = LogConfig(
        segment_bytes=900,
        index_interval_bytes=150,
        message_timestamp_type="LogAppendTime" if append_time else "CreateTime",
    )
    leaders_disk, followers_disk = MemoryDisk(), MemoryDisk()
    leader, follower = open_log(leaders_disk, config), open_log(followers_disk, config)
    epoch = sequence = 0
    for number, (kind, size, compression, epochs) in enumerate(batches):
        epoch += epochs
        batch = plain(size, NOW_MS + number, compression=compression)
        if kind == "idempotent":
            batch, sequence = idempotent(9, 0, sequence, size), sequence + size
        leader.append(batch, leader_epoch=epoch, now_ms=NOW_MS + 1000 * number * (kind == "later"))
    for fetch_number in count():
        if follower.log_end_offset == leader.log_end_offset:
            break
        size_bytes = response_sizes[fetch_number % len(response_sizes)]
        fetched = leader.read(follower.log_end_offset, 1500, leader.log_end_offset)
        follow(follower, fetched[: max(size_bytes, len(first_batch(fetched)))])
    assert state(follower) == state(leader)
    leader.close()
    follower.close()
    assert followers_disk.files == leaders_disk.files


def first_batch(fetched: bytes) -> bytes:
    return fetched[: BatchHeader.parse(fetched).size_bytes]


def test_fetched_records_with_a_corrupt_batch_are_rejected():
    batches = [plain(2), plain(3), plain(1)]
    fetched = everything(appended(open_log(), *batches))
    starts = [sum(map(len, batches[:number])) for number in range(3)]
    unchecked = {start + field for start in starts for field in (*range(8), *range(12, 16))}  # offset and epoch
    for position in set(range(len(fetched))) - unchecked:
        follower = open_log()
        flipped = bytearray(fetched)
        flipped[position] ^= 0x10
        before = state(follower)
        try:
            follow(follower, bytes(flipped))
        except AppendError:
            assert state(follower) == before
        else:  # a length that exceeds the response means a torn batch
            assert any(start + 8 <= position < start + 12 for start in starts)
            assert fetched.startswith(everything(follower))
            assert follower.log_end_offset < 6


def test_torn_batch_is_completed_by_the_next_response():
    leader = appended(open_log(), plain(2), plain(3))
    fetched = everything(leader)
    for cut in range(len(fetched) + 1):
        follower = open_log()
        follow(follower, fetched[:cut])
        assert follower.log_end_offset in {0, 2, 5}
        follow(follower, everything(leader)[follower.size_bytes :])
        assert state(follower) == state(leader)


@pytest.mark.parametrize("base_offset", [0, 1])
def test_batch_below_the_log_end_is_rejected(base_offset):
    follower = appended(open_log(), plain(2))
    batch = BatchHeader.parse(plain(3))._replace(base_offset=base_offset, leader_epoch=0).pack() + plain(3)[61:]
    with pytest.raises(AppendError, match="does not follow a log that ends at 2 with epoch 0"):
        follow(follower, batch)


def test_offset_gap_in_the_leaders_log_is_accepted():
    follower = appended(open_log(), plain(2))
    follow(follower, BatchHeader.parse(plain())._replace(base_offset=10, leader_epoch=3).pack() + plain()[61:])
    assert (follower.log_end_offset, follower.epochs.entries) == (11, ((0, 0), (3, 10)))
    assert offsets(follower.read(2, 1000, 11)) == [10]


def test_older_epoch_is_rejected_and_epoch_above_the_leader_epoch_is_skipped():
    leader = appended(appended(open_log(), plain(2), epoch=3), plain(2), epoch=5)
    follower = appended(open_log(), epoch=4)
    follow(follower, everything(leader), leader_epoch=4)
    assert (follower.log_end_offset, follower.latest_epoch) == (2, 3)
    follower.assign_epoch_start_offset(6)
    before = state(follower)
    with pytest.raises(AppendError, match="with epoch 6"):
        follow(follower, everything(leader)[len(first_batch(everything(leader))) :], leader_epoch=7)
    assert state(follower) == before


def test_empty_log_starts_with_the_batch_that_contains_its_start_offset():
    leader = appended(open_log(), plain(4), plain(3))
    leader.maybe_increment_log_start_offset(2)
    follower = open_log()
    follower.truncate_fully_and_start_at(leader.log_start_offset, NOW_MS)
    follow(follower, leader.read(2, 10_000, 7))
    assert (follower.log_start_offset, follower.log_end_offset) == (0, 7)
    follower.maybe_increment_log_start_offset(leader.log_start_offset)
    assert offsets(follower.read(2, 10_000, 7)) == list(range(7))


def test_epoch_without_records_is_removed_by_the_next_truncation():
    log = appended(open_log(), plain(2), epoch=1)
    log.assign_epoch_start_offset(4)
    assert (log.latest_epoch, log.end_offset_for_epoch(1), log.end_offset_for_epoch(4)) == (4, (1, 2), (4, 2))
    log.truncate_to(2, NOW_MS)
    assert (log.latest_epoch, log.log_end_offset) == (1, 2)


def test_full_truncation_deletes_all_records_and_state():
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(12):
        appended(log, idempotent(9, 0, 10 * number, 10), epoch=number)
    log.truncate_fully_and_start_at(500, NOW_MS)
    assert state(log) == (500, 500, (), b"", open_log().producers.snapshot())
    assert {name: len(content) for name, content in disk.files.items()} == {
        f"{DIRECTORY}/{500:020d}.index": 0,
        f"{DIRECTORY}/{500:020d}.log": 0,
        f"{DIRECTORY}/{500:020d}.timeindex": 0,
        f"{DIRECTORY}/leader-epoch-checkpoint": 4,
    }
    appended(log, idempotent(9, 0, 0), epoch=20)
    log = UnifiedLog.open(disk, DIRECTORY, CONFIG, NOW_MS, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (500, 501, ((20, 500),))
