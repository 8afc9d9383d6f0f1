"""Responses are compared with the request and with the broker's state: wrong responses of each kind are detected."""

from typing import Any
from unittest.mock import patch

import pytest

from chaos.defects.registry import defect
from chaos.simulation.run import run
from conformance.trial.trial import Topic, Trial
from fixtures.clients.steps import (
    DeleteRecords,
    Idle,
    ListOffsets,
    Metadata,
    OffsetForLeaderEpoch,
    Produce,
    Producer,
    RequestClient,
    SendBatches,
)
from fixtures.faults import Kill, Pause, Role, ShutDown, Timed
from reference_broker.core.handlers import list_offsets
from reference_broker.protocol.errors import ErrorCode

WRITES = Producer(steps=(SendBatches(batches=12, pause_ms=500),), idempotent=False)
SCRIPTS = {
    ("return-zero-for-the-start", "offset-response"): Trial(
        clients=(RequestClient(steps=(Produce(), DeleteRecords(), ListOffsets(timestamp=-2))),)
    ),
    ("return-the-log-end-for-every-epoch", "epoch-response"): Trial(
        clients=(WRITES, RequestClient(steps=(Idle(4_000), Metadata(), OffsetForLeaderEpoch(epochs_ago=1)))),
        schedule=(Timed(500, ShutDown(Role.LEADER), 2_000),),
    ),
    ("demand-one-replica-too-many", "isr-response"): Trial(
        topics=(Topic(replication_factor=3, properties=(("min.insync.replicas", "2"),)),),
        clients=(WRITES,),
        schedule=(Timed(0, Kill(Role.LAST_FOLLOWER), 12_000),),
    ),
}
"""For each defect and the invariant that it violates: a trial that detects it."""


@pytest.mark.parametrize(("name", "violated"), SCRIPTS)
def test_a_wrong_response_is_detected(name: str, violated: str) -> None:
    trial = SCRIPTS[name, violated]
    with defect(name).seeded():
        violation = run(trial).violation
    assert violation is not None
    assert violation.name == violated
    assert run(trial).violation is None


DEBUGGING = Trial(
    topics=(Topic(replication_factor=3),),
    clients=(
        Producer(steps=(SendBatches(batches=35, pause_ms=100),), idempotent=False, acks=1),
        RequestClient(steps=(Idle(500), ListOffsets(times=30, pause_ms=100, is_debugging=True))),
    ),
    schedule=(Timed(300, Pause(Role.LAST_FOLLOWER), 2_000),),
)
"""A debugging consumer looks up the log end offset while a follower lags."""


def not_available(request: Any, _partition: Any, requested: Any, _found: Any) -> Any:
    return list_offsets._error(request, requested, ErrorCode.offset_not_available)


@pytest.mark.parametrize(
    ("attribute", "replacement"),
    [("_CONSUMER", list_offsets._DEBUGGING_CONSUMER), ("_find", not_available)],
    ids=["high watermark", "error"],
)
def test_a_debugging_consumer_receives_the_log_end_offset(attribute: str, replacement: Any) -> None:
    with patch.object(list_offsets, attribute, replacement):
        violation = run(DEBUGGING).violation
    assert violation is not None
    assert violation.name == "offset-response"
    assert run(DEBUGGING).violation is None
