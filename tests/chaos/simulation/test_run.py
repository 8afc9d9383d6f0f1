"""Trials in virtual time and their verdicts, without and with a bug in the broker."""

import pytest

from chaos.simulation.run import SimulatedRun, run
from conformance.trial.trial import Topic, Trial
from fixtures.clients.steps import (
    CommitOffsets,
    Consumer,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    Fetch,
    FetchOffsets,
    Flush,
    Idle,
    ListOffsets,
    MalformedRequest,
    Metadata,
    OffsetForLeaderEpoch,
    Poll,
    Produce,
    Producer,
    RequestClient,
    Seek,
    SendBatches,
)
from fixtures.faults import Configure, CutConnections, Isolate, Kill, Lost, Pause, PowerCut, Role, ShutDown, Timed, Wipe
from linearizability.history.validate import validate
from reference_broker.core.broker_lifecycle_manager import BrokerLifecycleManager
from reference_broker.core.group_coordinator import GroupCoordinator
from reference_broker.core.replication.partition import Partition


def operations(outcome: SimulatedRun, f: str) -> list[dict[str, object]]:
    """Return the operations of one kind in the history."""
    return [row for row in outcome.history.table("operations").to_pylist() if row["f"] == f]


def test_a_calm_run_is_in_order_and_every_record_is_read():
    trial = Trial(
        clients=(
            Producer(steps=(SendBatches(batches=5, records=3, pause_ms=20), Flush(), SendBatches())),
            Consumer(steps=(Poll(times=10, pause_ms=20), CommitOffsets(), FetchOffsets()), group="g"),
        )
    )
    outcome = run(trial)
    assert outcome.violation is None
    validate(outcome.history)
    sent = {row["value"] for row in outcome.history.table("records").to_pylist() if row["direction"] == "send"}
    read = {row["value"] for row in outcome.history.table("records").to_pylist() if row["direction"] == "read"}
    assert len(sent) == 5 * 3 + 1 + 1  # the last 1 is the run's own write, after the faults
    assert sent == read
    committed, fetched = outcome.history.table("offsets").to_pylist()[:2]
    assert committed["offset"] == fetched["offset"] > 0


def test_a_trial_always_has_the_same_run():
    trial = Trial(
        seed=5,
        clients=(Producer(steps=(SendBatches(batches=10, pause_ms=100),)), Consumer(steps=(Poll(times=10),))),
        schedule=(Timed(100, PowerCut((Role.LEADER,), after_writes=3), 800),),
    )
    assert run(trial).digest == run(trial).digest
    assert run(trial).history.table("operations").equals(run(trial).history.table("operations"))


@pytest.mark.parametrize(
    "fault",
    [
        Kill(Role.LEADER),
        ShutDown(Role.LEADER),
        PowerCut((Role.LEADER,)),
        Pause(Role.LEADER),
        Isolate(Role.LEADER),
        CutConnections(Role.CLIENTS, Role.LEADER),
        CutConnections(Role.FOLLOWER, Role.LEADER, Lost.ANSWERS),
        Wipe(Role.FOLLOWER),
        Configure("min.insync.replicas", "3"),
    ],
)
def test_all_records_of_a_retrying_producer_are_acknowledged_despite_a_fault(fault: object):
    trial = Trial(
        topics=(Topic(partitions=2),),
        clients=(
            Producer(steps=(SendBatches(batches=20, pause_ms=200), SendBatches(batches=5, partition=1), Flush())),
            Consumer(steps=(Poll(times=40, pause_ms=100),), partitions=(("a", 0), ("a", 1))),
        ),
        schedule=(Timed(300, fault, 2_500),),
    )
    outcome = run(trial)
    assert outcome.violation is None
    validate(outcome.history)
    assert {row["outcome"] for row in operations(outcome, "produce")} == {"ok"}
    assert len(outcome.history.table("faults")) >= 1


def test_raw_clients_send_requests_that_no_valid_client_sends():
    steps = (
        Produce(idempotent=True, copies=2),
        Produce(idempotent=True, skips=3),
        Produce(corrupt=True),
        Produce(node=Role.FOLLOWER),
        MalformedRequest(),
        Fetch(),
        Fetch(epoch_ahead=1),
        ListOffsets(times=2),
        OffsetForLeaderEpoch(),
        Metadata(),
        DeleteRecords(before=1),
        CreateTopic("c"),
        DeleteTopic("c"),
        Idle(10),
    )
    outcome = run(Trial(clients=(RequestClient(steps=steps),)))
    assert outcome.violation is None
    validate(outcome.history)
    errors = [row["error"] for row in operations(outcome, "produce")]
    assert errors[:4] == [None, "OUT_OF_ORDER_SEQUENCE_NUMBER", "CORRUPT_MESSAGE", "NOT_LEADER_OR_FOLLOWER"]
    fetches = [row["error"] for row in operations(outcome, "fetch")]
    assert fetches == [None, "UNKNOWN_LEADER_EPOCH"]


def test_a_consumer_continues_from_the_offset_that_it_seeks():
    trial = Trial(
        clients=(
            Producer(steps=(SendBatches(batches=6),)),
            Consumer(steps=(Idle(200), Poll(times=2), Seek(offset=2), Poll(times=2), Seek(offset=None), Poll())),
        )
    )
    outcome = run(trial)
    assert outcome.violation is None
    moves = [row["after"] for row in outcome.history.table("positions").to_pylist() if row["cause"] == "seek"]
    assert moves[0] == 2
    assert len(moves) == 2


def test_the_history_has_no_replication_factor_of_a_topic_that_a_client_creates_again():
    again = (DeleteTopic(topic="b"), CreateTopic(topic="b", replication_factor=2))
    isolated = Timed(at_ms=0, fault=Isolate(node=Role.CONTROLLER))
    trial = Trial(
        seed=3, topics=(Topic(), Topic(name="b")), clients=(RequestClient(steps=again),), schedule=(isolated,)
    )
    outcome = run(trial)
    assert outcome.violation is None
    assert {name: "replication.factor" in settings for name, settings in outcome.history.run.topics.items()} == {
        "a": True,
        "b": False,
    }


def test_an_exception_of_the_broker_is_a_violation(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(Partition, "append", broken)
    outcome = run(Trial(clients=(Producer(steps=(SendBatches(),)),)))
    assert outcome.violation is not None
    assert outcome.violation.name == "exception"
    assert "no such thing" in outcome.violation.text


def test_a_broker_that_applies_large_metadata_in_pieces_has_no_violation():
    trial = Trial(topics=(Topic("a", 12, 3),), schedule=(Timed(100, Kill(Role.FOLLOWER), 300),))
    assert run(trial).violation is None


def test_stable_offsets_that_never_come_are_a_violation(monkeypatch):
    monkeypatch.setattr(GroupCoordinator, "await_stable", lambda *_: None)
    trial = Trial(clients=(Consumer(steps=(CommitOffsets(), FetchOffsets()), group="g"),))
    violation = run(trial).violation
    assert violation is not None
    assert violation.name == "not-converged"


def test_a_node_that_does_not_end_when_all_are_shut_down_is_a_violation(monkeypatch):
    monkeypatch.setattr(BrokerLifecycleManager, "_end", lambda *_: None)
    violation = run(Trial()).violation
    assert violation is not None
    assert violation.name == "not-stopped"
