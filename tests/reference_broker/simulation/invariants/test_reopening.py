"""Checks of logs that were closed cleanly, in copies of their files."""

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log import unified_log
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.snapshots import ProducerSnapshots
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.damaged_indexes import check_damaged_indexes
from reference_broker.simulation.invariants.reopening import check_changes, check_reopening, check_verification
from tests.reference_broker.log.batches import NOW_MS, idempotent, plain

TIMESTAMPS_MS = (NOW_MS, NOW_MS + 5, NOW_MS + 1, NOW_MS + 2)


INDEXED = LogConfig(index_interval_bytes=0)


def closed_log(records=1, timestamps_ms=TIMESTAMPS_MS, config=None):
    """Return a disk, and a closed log on it whose batches are not in the order of their timestamps."""
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, "orders-0", config or LogConfig(), NOW_MS)
    for number, timestamp_ms in enumerate(timestamps_ms):
        log.append(idempotent(5, 0, records * number, records, timestamp_ms), leader_epoch=0, now_ms=NOW_MS)
    log.close()
    return disk, log


def note_the_last_timestamp(self):
    """Determine the end offset, and take the timestamp of the last batch for the largest one."""
    _load_tail(self)
    headers = list(self.headers(self.base_offset))
    if headers:
        self._largest = self._largest._replace(timestamp_ms=headers[-1].max_timestamp_ms)


def header_of_any_size(_self, data, start, _position):
    return BatchHeader.parse(data, start) if len(data) - start >= HEADER_SIZE_BYTES else None


_load_tail = LogSegment.load_tail


def test_closed_log_opens_and_truncates():
    disk, log = closed_log()
    check_reopening("a log", disk, log)
    check_changes("a log", disk, log, NOW_MS)
    check_verification("a log", disk, log, NOW_MS)


def test_timestamp_that_is_lost_in_a_truncation_is_a_violation(monkeypatch):
    disk, log = closed_log()
    monkeypatch.setattr(LogSegment, "load_tail", note_the_last_timestamp)
    with pytest.raises(InvariantViolation, match="time-index-fits-log"):
        check_changes("a log", disk, log, NOW_MS)


def test_incomplete_batch_that_is_kept_is_a_violation(monkeypatch):
    disk, log = closed_log()
    monkeypatch.setattr(BatchFile, "_header", header_of_any_size)
    with pytest.raises(InvariantViolation, match="with a part of a batch at the end"):
        check_reopening("a log", disk, log)


def test_lookup_in_more_steps_than_the_records_need_is_a_violation(monkeypatch):
    disk, log = closed_log(records=3, timestamps_ms=[NOW_MS + number for number in range(6)])
    check_changes("a log", disk, log, NOW_MS)
    monkeypatch.setattr(unified_log, "RECORDS_PER_STEP", 1)
    with pytest.raises(InvariantViolation, match="is found among 3 records in 2 steps"):
        check_changes("a log", disk, log, NOW_MS)


def test_log_that_needs_its_epoch_checkpoint_is_a_violation(monkeypatch):
    disk, log = closed_log()
    monkeypatch.setattr(UnifiedLog, "_restore_epochs", lambda *_: None)
    with pytest.raises(InvariantViolation, match="with no leader epochs"):
        check_reopening("a log", disk, log)


def test_corrupt_batch_that_is_not_verified_is_a_violation(monkeypatch):
    disk, log = closed_log()
    monkeypatch.setattr(BatchFile, "valid_batches", lambda self, *_: self.headers())
    with pytest.raises(InvariantViolation, match="recovery-verifies"):
        check_verification("a log", disk, log, NOW_MS)


def test_offset_that_does_not_fit_into_its_segment_is_a_violation(monkeypatch):
    disk, log = closed_log()
    monkeypatch.setattr(LogSegment, "is_full", lambda *_: False)
    with pytest.raises(InvariantViolation, match="with a batch beyond the segment"):
        check_changes("a log", disk, log, NOW_MS)


def test_producer_that_is_lost_with_its_deleted_records_is_a_violation(monkeypatch):
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, "orders-0", LogConfig(), NOW_MS)
    for batch in (idempotent(5, 0, 0), *(plain() for _ in range(6))):
        log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    log.close()
    check_changes("a log", disk, log, NOW_MS)
    monkeypatch.setattr(
        ProducerSnapshots, "restore", lambda _self, _producers, log_start_offset, _end: log_start_offset
    )
    with pytest.raises(InvariantViolation, match="was closed with producers"):
        check_changes("a log", disk, log, NOW_MS)


def test_lookups_do_not_depend_on_correct_indexes():
    disk, log = closed_log(config=INDEXED)
    check_damaged_indexes("a log", disk, log, NOW_MS)


@pytest.mark.parametrize(
    ("method", "is_confirmed", "violation"),
    [
        ("_confirms_largest", True, "with empty time indexes"),
        ("_confirms_timestamp", False, "indexes-kept: a log, with correct indexes"),
    ],
)
def test_index_that_is_trusted_or_always_rebuilt_is_a_violation(monkeypatch, method, is_confirmed, violation):
    disk, log = closed_log(timestamps_ms=(NOW_MS, NOW_MS + 5, NOW_MS + 6, NOW_MS + 1), config=INDEXED)
    monkeypatch.setattr(LogSegment, method, lambda *_: is_confirmed)
    with pytest.raises(InvariantViolation, match=violation):
        check_damaged_indexes("a log", disk, log, NOW_MS)
