"""Duplicates of an idempotent producer: permitted if a leader may have lost its producer state, else violations."""

import pytest

from linearizability.check import judge
from tests.linearizability.anomalies.histories import TOPIC, Tables

SENT_NS, KILLED_NS, BACK_NS, ACKNOWLEDGED_NS, READ_NS = 100, 200, 300, 400, 500
IN_FLIGHT = "max.in.flight.requests.per.connection"


def history(
    *,
    faults=(("kill", "1", KILLED_NS, BACK_NS),),
    sent_ns=SENT_NS,
    acknowledged_ns=ACKNOWLEDGED_NS,
    producer_id=-1,
    producer_epoch=None,
    epochs=(0, 2),
    read_ns=READ_NS,
    leaders=((2, 1),),
    clients=None,
    txn_id=None,
    acks=-1,
    **columns,
):
    """Return a history in which a read returns several copies of one record of an idempotent producer.

    :param epochs: the leader epoch of each copy, in the order of their offsets.
    :param leaders: the known (leader epoch, node).
    """
    tables = Tables(topics={TOPIC: {"replication.factor": "3", "min.insync.replicas": "2"}}, clients=clients or {})
    for number, (kind, target, inject_ns, heal_ns) in enumerate(faults):
        tables.add("faults", fault_id=number, kind=kind, target=target, inject_ns=inject_ns, heal_ns=heal_ns)
    for epoch, node in leaders:
        tables.add(
            "states", asked_ns=READ_NS, answered_ns=READ_NS + 1, source="list_offsets", topic=TOPIC, partition=0,
            leader_epoch=epoch, node=node, isr=[1, 2, 3], high_watermark=len(epochs), isolation="read_uncommitted",
        )  # fmt: skip
    op = tables.op(
        7, "produce", sent_ns, acknowledged_ns, acks=acks, producer_id=producer_id, producer_epoch=producer_epoch,
        txn_id=txn_id, **columns,
    )  # fmt: skip
    tables.record(op, 0, "send", TOPIC, 0, len(epochs) - 1, 10)
    poll = tables.op(8, "poll", read_ns, read_ns + 5, isolation="read_uncommitted")
    for offset, epoch in enumerate(epochs):
        tables.record(poll, offset, "read", TOPIC, 0, offset, 10, leader_epoch=epoch)
    tables.add("positions", op_id=poll, topic=TOPIC, partition=0, before=0, after=len(epochs), cause="read")
    return tables


def verdict(tmp_path, **columns):
    found = judge(history(**columns).write(tmp_path / "run")).anomalies
    return next(str(anomaly.verdict) for anomaly in found if anomaly.name == "duplicate")


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({}, id="killed"),
        pytest.param({"faults": [("shutdown", "1", 200, 250), ("down", "1", 250, 300)]}, id="shut down"),
        pytest.param({"faults": [("kill", None, 200, 300)]}, id="a fault without a named node"),
        pytest.param({"faults": [("kill", "1", 200, None)]}, id="a fault without an end"),
        pytest.param({"leaders": ()}, id="a leader that is not known"),
        pytest.param({"epochs": (None, None)}, id="leader epochs that are not known"),
        pytest.param({"producer_id": 4, "producer_epoch": 1}, id="a producer epoch that was bumped"),
        pytest.param({"clients": {"7": {IN_FLIGHT: "5"}}}, id="several in flight"),
        pytest.param(
            {
                "epochs": (0, 2, 4),
                "leaders": ((2, 1), (4, 3)),
                "faults": [("kill", "1", 150, 200), ("kill", "3", 250, 300)],
            },
            id="twice",
        ),
    ],
)
def test_a_duplicate_by_a_restarted_leader_is_permitted(tmp_path, columns):
    assert verdict(tmp_path, **columns) == "permitted"


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"faults": ()}, id="nothing restarted"),
        pytest.param({"faults": [("pause", "1", 200, 300)]}, id="paused"),
        pytest.param({"faults": [("cut", "1->2", 200, 300)]}, id="cut off"),
        pytest.param({"faults": [("disk", "1", 200, 300)], "epochs": (0, 0)}, id="the same leader epoch"),
        pytest.param({"epochs": (0, 0)}, id="killed, and the same leader epoch"),
        pytest.param({"epochs": (2, 0)}, id="leader epochs in descending order"),
        pytest.param({"leaders": ((2, 3),)}, id="a leader that did not restart"),
        pytest.param({"faults": [("kill", "1", 400, 450)]}, id="restarted after the acknowledgement"),
        pytest.param({"faults": [("kill", "1", 50, 90)]}, id="restarted before it was sent"),
        pytest.param({"read_ns": 150, "acknowledged_ns": 400}, id="both copies read before the restart"),
        pytest.param({"producer_id": 4, "producer_epoch": 0}, id="the same producer epoch"),
        pytest.param({"clients": {"7": {IN_FLIGHT: "1"}}}, id="one in flight"),
        pytest.param({"clients": {"7": {"max.in.flight": "1"}}}, id="one in flight, by the other name"),
        pytest.param({"epochs": (0, 2, 2)}, id="a third copy of the same leader epoch"),
    ],
)
def test_any_other_duplicate_is_a_violation(tmp_path, columns):
    assert verdict(tmp_path, **columns) == "violation"


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("bumped", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("unacknowledged", [False, True])
def test_only_all_conditions_together_permit_a_duplicate(tmp_path, restarted, bumped, several, unacknowledged):
    permitted = verdict(
        tmp_path,
        faults=[("kill", "1" if restarted else "2", KILLED_NS, BACK_NS)],
        producer_id=4,
        producer_epoch=int(bumped),
        clients={"7": {IN_FLIGHT: "5" if several else "1"}},
        acknowledged_ns=ACKNOWLEDGED_NS if unacknowledged else KILLED_NS - 50,
    )
    assert (permitted == "permitted") is (restarted and bumped and several and unacknowledged)
