"""Responses are compared with requests and with the broker's state: a defect of each kind is detected."""

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
from fixtures.faults import Kill, Role, ShutDown, Timed

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


@pytest.mark.parametrize(("name", "violated"), SCRIPTS)
def test_a_wrong_response_is_detected(name: str, violated: str) -> None:
    trial = SCRIPTS[name, violated]
    with defect(name).seeded():
        violation = run(trial).violation
    assert violation is not None
    assert violation.name == violated
    assert run(trial).violation is None
