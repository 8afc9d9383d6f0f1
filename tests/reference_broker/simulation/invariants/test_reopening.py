"""Checks of logs that were closed cleanly, in copies of their files."""

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log import unified_log
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.reopening import check_changes, check_reopening
from tests.reference_broker.log.batches import NOW_MS, idempotent

TIMESTAMPS_MS = (NOW_MS, NOW_MS + 5, NOW_MS + 1, NOW_MS + 2)


def closed_log(records=1, timestamps_ms=TIMESTAMPS_MS):
    """Return a disk, and a closed log on it whose batches are not in the order of their timestamps."""
    disk = MemoryDisk()
    log = UnifiedLog.open(disk, "orders-0", LogConfig(), NOW_MS)
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
