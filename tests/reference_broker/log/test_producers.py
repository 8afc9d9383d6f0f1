"""Idempotent producers (KIP-98, KIP-360): duplicates, gaps, epochs, wrap-around, expiry, and state after a restart."""

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
    """A log in memory. `send` appends an idempotent batch and returns its base offset or the error."""

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


def test_last_five_batches_are_duplicates_and_older_ones_are_out_of_order(log):
    assert [log.send(sequence) for sequence in range(7)] == list(range(7))
    assert [log.send(sequence) for sequence in range(2, 7)] == [2, 3, 4, 5, 6]
    assert log.send(1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.log.log_end_offset == 7


def test_duplicate_must_have_the_same_range_of_sequences(log):
    log.send(0, 3)
    again = log.log.append(idempotent(5, 0, 0, 3), leader_epoch=3, now_ms=NOW_MS)
    assert (again.base_offset, again.last_offset, again.log_append_time_ms) == (0, 2, NOW_MS)
    assert log.send(0, 2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.log.latest_epoch == 0


def test_a_gap_is_out_of_order(log):
    log.send(0, 3)
    assert log.send(4) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(3) == 3


def test_unknown_producer_may_start_with_any_sequence(log):
    assert log.send(17) == 0
    assert log.send(18) == 1


def test_new_producer_epoch_starts_at_zero_and_fences_the_old(log):
    log.send(0)
    assert log.send(1, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(0, epoch=1) == 1
    assert log.send(1, epoch=0) == "INVALID_PRODUCER_EPOCH"
    assert log.send(0, epoch=0) == "INVALID_PRODUCER_EPOCH"


def test_sequences_wrap_around(log):
    log.send(SEQUENCE_MAX - 1)
    assert log.send(SEQUENCE_MAX) == 1
    assert log.send(0) == 2
    assert log.send(SEQUENCE_MAX) == 1


def test_sequences_wrap_around_inside_a_batch(log):
    log.send(SEQUENCE_MAX - 1, 4)
    assert log.send(SEQUENCE_MAX - 1, 4) == 0
    assert log.send(2) == 4


def test_producers_are_independent(log):
    log.send(0, producer_id=1)
    assert log.send(0, producer_id=2) == 1
    assert log.send(1, producer_id=1) == 2


def test_clean_restart_restores_only_the_last_batch(log):
    for sequence in range(3):
        log.send(sequence)
    log.restart(clean=True)
    assert log.send(2) == 2
    assert log.send(1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(3) == 3


@pytest.mark.parametrize("rolls", [False, True])
def test_recovery_restores_only_the_last_batch_with_or_without_a_roll(log, rolls):
    """Recovery takes a snapshot with the last batch at the end of each segment, as Kafka 3.9.2 and 4.3.1 do."""
    for sequence in range(7):
        log.send(sequence)
        if rolls and sequence == 5:
            log.log.roll(NOW_MS)
    log.restart(clean=False)
    assert [log.send(sequence) for sequence in (4, 5, 6, 7)] == [*["OUT_OF_ORDER_SEQUENCE_NUMBER"] * 2, 6, 7]


def test_batches_after_a_restart_are_recognized_as_duplicates(log):
    for sequence in range(3):
        log.send(sequence)
    log.restart(clean=False)
    for sequence in range(3, 6):
        log.send(sequence)
    assert [log.send(sequence) for sequence in range(1, 6)] == ["OUT_OF_ORDER_SEQUENCE_NUMBER", 2, 3, 4, 5]


def test_recovery_takes_a_snapshot_at_the_end_of_each_segment(log):
    for sequence in range(6):
        log.send(sequence)
        if sequence in {1, 3}:
            log.log.roll(NOW_MS)
    for offset in (2, 4):
        log.disk.delete(f"{DIRECTORY}/{offset:020d}.snapshot")
    log.restart(clean=False)
    names = sorted(name for name in log.disk.list(DIRECTORY) if name.endswith(".snapshot"))
    assert names == [f"{offset:020d}.snapshot" for offset in (2, 4, 6)]


def test_snapshot_of_lost_batches_is_not_loaded(log):
    """A snapshot above the recovery point may contain batches that were lost and replaced by others."""
    for sequence in range(3):
        log.send(sequence)
    stale = Producing()
    stale.send(40, 3)
    stale.log.close()
    path = f"{DIRECTORY}/{3:020d}.snapshot"
    log.disk.replace(path, bytes(stale.disk.files[path]))
    log.restart(clean=False)
    assert log.send(3) == 3


def test_producer_without_batches_above_the_log_start_offset_is_unknown_after_a_restart(log):
    """A snapshot at or below the log start offset is not loaded (`ProducerStateManager.truncateAndReload`)."""
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


def test_truncation_restores_producers_from_the_snapshot_and_later_batches(log):
    for sequence in range(6):
        log.send(sequence)
        if sequence == 2:
            log.log.roll(NOW_MS)
    log.log.truncate_to(5, NOW_MS)
    assert [log.send(sequence) for sequence in (1, 2, 3, 4, 5)] == ["OUT_OF_ORDER_SEQUENCE_NUMBER", 2, 3, 4, 5]


@pytest.mark.parametrize("damage", [b"", b"\0\1\0\0\0\0\0\0\0\1", None])
def test_missing_or_corrupt_snapshot_is_rebuilt_from_batches(log, damage):
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
    log.log.remove_expired_producers(NOW_MS + DAY_MS - 1)
    assert log.send(2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.log.remove_expired_producers(NOW_MS + DAY_MS)
    assert log.send(2) == 1


def test_expired_producers_are_not_loaded(log):
    log.send(0)
    log.log.close()
    log.restart(clean=True, now_ms=NOW_MS + DAY_MS)
    assert log.send(9) == 1


def test_truncation_removes_truncated_batches_from_the_producer_state(log):
    for sequence in range(4):
        log.send(sequence)
    log.log.truncate_to(2, NOW_MS)
    assert log.send(3) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(2) == 2


def test_snapshot_has_kafkas_format(log):
    """The expected bytes are those of Apache Kafka 4.3.1 for one batch of producer 5 (ProducerSnapshot, version 1)."""
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
def test_responses_equal_those_of_a_model_with_the_whole_history(sends):
    """The model keeps every batch and applies the rules to this list."""
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
