"""Idempotence (KIP-98, KIP-360): duplicates, gaps, epochs, wrap-around, expiry, and what of it survives a restart."""

from collections import defaultdict

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.errors import AppendError
from reference_broker.core.log.unified_log import UnifiedLog
from tests.reference_broker.log.batches import NOW_MS, idempotent

DIRECTORY = "orders-0"
SEQUENCE_MAX = 2**31 - 1
DAY_MS = 86_400_000


class Producing:
    """A log, and the outcome of a produce as an offset or an error."""

    def __init__(self, config: LogConfig = LogConfig()) -> None:  # noqa: B008 - frozen
        self.disk = MemoryDisk()
        self.config = config
        self.log = UnifiedLog.open(self.disk, DIRECTORY, config, NOW_MS)

    def send(self, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 5, timestamp_ms: int = NOW_MS):
        batch = idempotent(producer_id, epoch, sequence, count, timestamp_ms)
        try:
            return self.log.append(batch, leader_epoch=0, now_ms=NOW_MS).base_offset
        except AppendError as error:
            return error.error

    def restart(self, *, clean: bool, now_ms: int = NOW_MS) -> None:
        if clean:
            self.log.close()
        self.log = UnifiedLog.open(self.disk, DIRECTORY, self.config, now_ms, clean=clean)


@pytest.fixture
def log():
    return Producing()


def test_one_of_the_last_five_is_a_duplicate_and_an_older_one_is_out_of_order(log):
    assert [log.send(sequence) for sequence in range(7)] == list(range(7))
    assert [log.send(sequence) for sequence in range(2, 7)] == [2, 3, 4, 5, 6]
    assert log.send(1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.log.log_end_offset == 7


def test_a_duplicate_has_the_whole_range(log):
    log.send(0, 3)
    again = log.log.append(idempotent(5, 0, 0, 3), leader_epoch=3, now_ms=NOW_MS)
    assert (again.base_offset, again.last_offset, again.log_append_time_ms) == (0, 2, NOW_MS)
    assert log.send(0, 2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.log.latest_epoch == 0


def test_a_gap_is_out_of_order(log):
    log.send(0, 3)
    assert log.send(4) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(3) == 3


def test_an_unknown_producer_may_begin_anywhere(log):
    assert log.send(17) == 0
    assert log.send(18) == 1


def test_a_new_epoch_begins_at_zero_and_fences_the_old(log):
    log.send(0)
    assert log.send(1, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(0, epoch=1) == 1
    assert log.send(1, epoch=0) == "INVALID_PRODUCER_EPOCH"
    assert log.send(0, epoch=0) == "INVALID_PRODUCER_EPOCH"


def test_sequences_wrap(log):
    log.send(SEQUENCE_MAX - 1)
    assert log.send(SEQUENCE_MAX) == 1
    assert log.send(0) == 2
    assert log.send(SEQUENCE_MAX) == 1


def test_a_batch_may_wrap_inside(log):
    log.send(SEQUENCE_MAX - 1, 4)
    assert log.send(SEQUENCE_MAX - 1, 4) == 0
    assert log.send(2) == 4


def test_producers_do_not_meet(log):
    log.send(0, producer_id=1)
    assert log.send(0, producer_id=2) == 1
    assert log.send(1, producer_id=1) == 2


def test_a_clean_restart_remembers_the_last_batch_alone(log):
    for sequence in range(3):
        log.send(sequence)
    log.restart(clean=True)
    assert log.send(2) == 2
    assert log.send(1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(3) == 3


@pytest.mark.parametrize("rolls", [False, True])
def test_a_crash_remembers_the_last_batch_alone_whether_or_not_a_segment_was_rolled(log, rolls):
    """As Apache Kafka 3.9.2 and 4.3.1 do: recovery takes a snapshot at the end of each segment, which holds no more."""
    for sequence in range(7):
        log.send(sequence)
        if rolls and sequence == 5:
            log.log.roll(NOW_MS)
    log.restart(clean=False)
    assert [log.send(sequence) for sequence in (4, 5, 6, 7)] == [*["OUT_OF_ORDER_SEQUENCE_NUMBER"] * 2, 6, 7]


def test_what_is_appended_after_a_restart_is_remembered_again(log):
    for sequence in range(3):
        log.send(sequence)
    log.restart(clean=False)
    for sequence in range(3, 6):
        log.send(sequence)
    assert [log.send(sequence) for sequence in range(1, 6)] == ["OUT_OF_ORDER_SEQUENCE_NUMBER", 2, 3, 4, 5]


def test_recovery_leaves_a_snapshot_at_the_end_of_each_segment(log):
    for sequence in range(6):
        log.send(sequence)
        if sequence in {1, 3}:
            log.log.roll(NOW_MS)
    for offset in (2, 4):
        log.disk.delete(f"{DIRECTORY}/{offset:020d}.snapshot")
    log.restart(clean=False)
    names = sorted(name for name in log.disk.list(DIRECTORY) if name.endswith(".snapshot"))
    assert names == [f"{offset:020d}.snapshot" for offset in (2, 4, 6)]


def test_a_snapshot_of_batches_that_a_crash_took_is_not_loaded(log):
    """A snapshot above the recovery point may be of batches that were lost and replaced by others."""
    for sequence in range(3):
        log.send(sequence)
    stale = Producing()
    stale.send(40, 3)
    stale.log.close()
    path = f"{DIRECTORY}/{3:020d}.snapshot"
    log.disk.replace(path, bytes(stale.disk.files[path]))
    log.restart(clean=False)
    assert log.send(3) == 3


def test_a_producer_whose_batches_are_all_below_the_log_start_is_unknown_after_a_restart(log):
    """A snapshot at the log start or below is not loaded (`ProducerStateManager.truncateAndReload`)."""
    for sequence in range(3):
        log.send(sequence)
    log.log.roll(NOW_MS)
    log.send(0, producer_id=6)
    log.log.maybe_increment_log_start_offset(3)
    log.log.delete_below_start()
    log.log.close()
    log.log = UnifiedLog.open(log.disk, DIRECTORY, log.config, NOW_MS, clean=True, log_start_offset=3)
    assert log.send(9) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.log.close()
    log.disk.delete(f"{DIRECTORY}/{4:020d}.snapshot")
    log.log = UnifiedLog.open(log.disk, DIRECTORY, log.config, NOW_MS, clean=True, log_start_offset=3)
    assert log.send(9) == 4


def test_a_follower_that_truncates_remembers_what_the_snapshot_and_the_batches_behind_it_have(log):
    for sequence in range(6):
        log.send(sequence)
        if sequence == 2:
            log.log.roll(NOW_MS)
    log.log.truncate_to(5, NOW_MS)
    assert [log.send(sequence) for sequence in (1, 2, 3, 4, 5)] == ["OUT_OF_ORDER_SEQUENCE_NUMBER", 2, 3, 4, 5]


@pytest.mark.parametrize("damage", [b"", b"\0\1\0\0\0\0\0\0\0\1", None])
def test_a_lost_snapshot_is_made_up_for_by_the_batches(log, damage):
    for sequence in range(3):
        log.send(sequence)
    log.log.close()
    path = f"{DIRECTORY}/{3:020d}.snapshot"
    if damage is None:
        log.disk.delete(path)
    else:
        log.disk.replace(path, damage)
    log.log = UnifiedLog.open(log.disk, DIRECTORY, log.config, NOW_MS, clean=True)
    assert [log.send(sequence) for sequence in (0, 1, 2, 3)] == [0, 1, 2, 3]


def test_producers_expire(log):
    log.send(0)
    log.log.apply_retention(NOW_MS + DAY_MS - 1, 1)
    log.log.delete_below_start()
    assert log.send(2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.log.apply_retention(NOW_MS + DAY_MS, 1)
    log.log.delete_below_start()
    assert log.send(2) == 1


def test_expired_producers_are_not_loaded(log):
    log.send(0)
    log.log.close()
    log.restart(clean=True, now_ms=NOW_MS + DAY_MS)
    assert log.send(9) == 1


def test_truncation_takes_producers_back(log):
    for sequence in range(4):
        log.send(sequence)
    log.log.truncate_to(2, NOW_MS)
    assert log.send(3) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(2) == 2


def test_a_snapshot_in_kafkas_format(log):
    """Bytes as Apache Kafka 4.3.1 writes them for one batch of producer 5: the schema ProducerSnapshot, version 1."""
    log.send(7, 2, epoch=3)
    log.log.close()
    data = bytes(log.disk.files[f"{DIRECTORY}/{2:020d}.snapshot"])
    fields = [(1, 2), None, (1, 4), (5, 8), (3, 2), (8, 4), (1, 8), (1, 4), (NOW_MS, 8), (-1, 4), (-1, 8)]
    expected = b"".join(
        bytes(4) if field is None else field[0].to_bytes(field[1], "big", signed=True) for field in fields
    )
    assert data[:2] + data[6:] == expected[:2] + expected[6:]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=30
    )
)
def test_against_the_whole_history(sends):
    """An oracle that remembers every batch there was, and applies the rules to the list."""
    log = Producing()
    history = defaultdict(list)
    end = 0
    for producer_id, epoch, sequence, count in sends:
        past = history[producer_id]
        batch = (epoch, sequence, sequence + count - 1)
        recent = [entry for entry in past if entry[0][0] == past[-1][0][0]][-5:] if past else []
        duplicate = next((offset for entry, offset in recent if entry == batch), None)
        if duplicate is not None:
            expected = duplicate
        elif past and epoch < past[-1][0][0]:
            expected = "INVALID_PRODUCER_EPOCH"
        elif past and sequence != (past[-1][0][2] + 1 if epoch == past[-1][0][0] else 0):
            expected = "OUT_OF_ORDER_SEQUENCE_NUMBER"
        else:
            expected = end
            past.append((batch, end))
            end += count
        assert log.send(sequence, count, epoch=epoch, producer_id=producer_id) == expected
