"""A full truncation that a power cut can undo is a violation."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.tracer import LogFullyTruncated
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.files import check_full_truncation
from tests.reference_broker.log.batches import NOW_MS, plain

EVENT = LogFullyTruncated(UUID(int=200), "orders", 0, log_start_offset=500)


def flushed_log():
    """Return the disk of a node, and a durable log on it."""
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
