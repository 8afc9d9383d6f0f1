"""Checks of logs in states that no sequence of log operations can cause."""

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.index import OffsetIndex, TimeIndex
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.producer_state_manager import ProducerStateManager
from reference_broker.core.log.snapshots import ProducerSnapshots
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.log_copies import copy_crashed_log
from reference_broker.simulation.invariants.log_mirror import LogMirror
from reference_broker.simulation.invariants.oracle import check_log
from reference_broker.simulation.invariants.recovery import check_recovered
from tests.reference_broker.log.batches import NOW_MS, idempotent

UNKNOWN_PRODUCER = 777
SMALL = LogConfig(index_interval_bytes=100)


def log_and_mirror():
    """Return a log with several segments and epochs, partly above the recovery point, and its mirror."""
    log = UnifiedLog.open(MemoryDisk(), "orders-0", SMALL, NOW_MS)
    for sequence in range(6):
        timestamp_ms = NOW_MS + sequence % 3
        log.append(idempotent(5, 0, sequence, 1, timestamp_ms), leader_epoch=sequence // 2, now_ms=NOW_MS)
        if sequence == 2:
            log.roll(NOW_MS)
    mirror = LogMirror()
    mirror.follow(log)
    return log, mirror


def restore_all(self, recovery_point, now_ms):
    """Take no snapshots. Unlike in Kafka, more than the last batch of each producer is then restored."""


def forget_epochs(self, observe):
    """Recover without reporting batches to the leader epoch cache."""
    return _recover(self, lambda _: None)


def index_nothing(self, header, position):
    """Note the largest timestamp, and index no batch."""
    self._note_timestamp(header)


def leave_the_time_index_open(self, observe):
    """Recover without appending the largest timestamp to the time index."""
    cut_bytes = _recover(self, observe)
    self._time_index._keep(0)
    return cut_bytes


_recover = LogSegment.recover
PLANTED = {
    "recovered-producers": (UnifiedLog, "_recover_producer_state", restore_all),
    "recovered-epochs": (LogSegment, "recover", forget_epochs),
    "recovered-index": (LogSegment, "_index", index_nothing),
    "recovered-time-index": (LogSegment, "recover", leave_the_time_index_open),
}


@pytest.mark.parametrize("name", PLANTED)
def test_state_after_recovery_must_equal_a_replay_of_the_log(monkeypatch, name):
    log, mirror = log_and_mirror()
    check_log("a log", log, mirror, NOW_MS)
    monkeypatch.setattr(*PLANTED[name])
    again = UnifiedLog.open(copy_crashed_log(log), log.directory, SMALL, NOW_MS, recovery_point=log.recovery_point)
    with pytest.raises(InvariantViolation, match=name):
        check_recovered("a log", again, log.recovery_point, NOW_MS)
    with pytest.raises(InvariantViolation):
        check_log("a log", log, mirror, NOW_MS)


def test_producer_without_batches_is_a_violation():
    log = UnifiedLog.open(MemoryDisk(), "orders-0", LogConfig(), NOW_MS)
    log.append(idempotent(5, 0, 0, 3), leader_epoch=0, now_ms=NOW_MS)
    mirror = LogMirror()
    mirror.follow(log)
    check_log("a log", log, mirror, NOW_MS)
    log.producers._states[UNKNOWN_PRODUCER] = log.producers.get(5)
    with pytest.raises(InvariantViolation, match="producers-fit-log"):
        check_log("a log", log, mirror, NOW_MS)


def test_snapshot_without_a_producer_is_a_violation(monkeypatch):
    empty = ProducerStateManager().snapshot()
    monkeypatch.setattr(ProducerStateManager, "snapshot", lambda _: empty)
    log = UnifiedLog.open(MemoryDisk(), "orders-0", LogConfig(), NOW_MS)
    log.append(idempotent(5, 0, 0, 3), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    mirror = LogMirror()
    mirror.follow(log)
    with pytest.raises(InvariantViolation, match="producer 5 is lost in a crash"):
        check_log("a log", log, mirror, NOW_MS)


def keep_all_epochs(self, recovered):
    """Restore the recovered epochs after all epochs of the checkpoint."""
    self.epochs.restore([*self.epochs.entries, *recovered])


@pytest.mark.parametrize(
    ("owner", "method", "replacement"),
    [(UnifiedLog, "_restore_epochs", keep_all_epochs), (ProducerSnapshots, "delete_above", lambda *_: None)],
)
def test_files_from_before_a_truncation_must_not_be_trusted(monkeypatch, owner, method, replacement):
    log, mirror = log_and_mirror()
    monkeypatch.setattr(owner, method, replacement)
    with pytest.raises(InvariantViolation, match="recovery-keeps"):
        check_log("a log", log, mirror, NOW_MS)


@pytest.mark.parametrize(("index", "method"), [(OffsetIndex, "floor"), (TimeIndex, "before")])
def test_entry_that_is_not_found_in_its_index_is_a_violation(monkeypatch, index, method):
    log, mirror = log_and_mirror()
    monkeypatch.setattr(index, method, lambda *_: None)
    with pytest.raises(InvariantViolation, match="a lookup does not find"):
        check_log("a log", log, mirror, NOW_MS)
