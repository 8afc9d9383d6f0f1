"""What only a log made up by hand can show: a state that no change of a log leads to."""

import pytest

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.log.producers import Producers
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.log_mirror import LogMirror
from reference_broker.simulation.invariants.oracle import check_log
from tests.reference_broker.log.batches import NOW_MS, idempotent

UNKNOWN_PRODUCER = 777


def test_a_producer_is_remembered_by_nothing_but_its_batches():
    log = PartitionLog.open(MemoryDisk(), "orders-0", LogConfig(), NOW_MS)
    log.append(idempotent(5, 0, 0, 3), leader_epoch=0, now_ms=NOW_MS)
    mirror = LogMirror()
    mirror.follow(log)
    check_log("a log", log, mirror, NOW_MS)
    log.producers._states[UNKNOWN_PRODUCER] = log.producers.get(5)
    with pytest.raises(InvariantViolation, match="producers-fit-log"):
        check_log("a log", log, mirror, NOW_MS)


def test_a_snapshot_knows_every_producer(monkeypatch):
    nobody = Producers().snapshot()
    monkeypatch.setattr(Producers, "snapshot", lambda _: nobody)
    log = PartitionLog.open(MemoryDisk(), "orders-0", LogConfig(), NOW_MS)
    log.append(idempotent(5, 0, 0, 3), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    mirror = LogMirror()
    mirror.follow(log)
    with pytest.raises(InvariantViolation, match="producer 5 is forgotten in a crash"):
        check_log("a log", log, mirror, NOW_MS)
