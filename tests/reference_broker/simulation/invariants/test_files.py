"""A full truncation that a power cut can undo, and a stray log that is not found, are violations."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from reference_broker.core.log.checkpoints import RECOVERY_POINT_FILE, write_offsets
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.replication.log_manager import LogManager
from reference_broker.core.tracer import LogFullyTruncated
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.files import check_full_truncation, check_strays_are_found
from tests.reference_broker.log.batches import NOW_MS, plain

EVENT = LogFullyTruncated(UUID(int=200), "orders", 0, log_start_offset=500)


def flushed_log():
    """Return a node for the checks, and a durable log on its disk."""
    disk = SimulatedDisk()
    log = UnifiedLog.open(disk, "orders-0", LogConfig(), NOW_MS)
    log.append(plain(3), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    return SimpleNamespace(node_id=1, disk=disk), log


def test_durable_truncation_is_no_violation():
    watched, log = flushed_log()
    log.truncate_fully_and_start_at(500, NOW_MS)
    check_full_truncation(watched, EVENT)


def test_truncation_that_is_not_durable_is_a_violation(monkeypatch):
    watched, log = flushed_log()
    monkeypatch.setattr(SimulatedDisk, "flush_directory", lambda *_: None)
    log.truncate_fully_and_start_at(500, NOW_MS)
    with pytest.raises(InvariantViolation, match="cut-durably"):
        check_full_truncation(watched, EVENT)


def disk_of_a_log():
    """Return a disk with the files of a log manager and one log."""
    disk = SimulatedDisk()
    disk.make_directory("orders-0")
    disk.replace("orders-0/partition.metadata", b"version: 0\n")
    write_offsets(disk, RECOVERY_POINT_FILE, {("orders", 0): 3})
    return disk


def test_stray_logs_are_found():
    check_strays_are_found("a node", disk_of_a_log())


def test_stray_log_that_is_not_found_without_its_checkpoints_is_a_violation(monkeypatch):
    monkeypatch.setattr(LogManager, "_on_disk", lambda _: iter(()))
    with pytest.raises(InvariantViolation, match=r"does not find .*orders-0"):
        check_strays_are_found("a node", disk_of_a_log())


def test_deletion_of_a_missing_directory_is_an_error(monkeypatch):
    monkeypatch.setattr(
        LogManager, "_delete_directory", lambda self, topic, index: self._disk.delete_directory(f"{topic}-{index}")
    )
    with pytest.raises(FileNotFoundError, match="orders-0"):
        check_strays_are_found("a node", disk_of_a_log())
