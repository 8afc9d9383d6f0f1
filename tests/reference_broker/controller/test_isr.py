"""Changes of the in-sync replicas by AlterPartition."""

from uuid import UUID

import pytest

from reference_broker.core.controller.partition_changes import LeaderRecoveryState
from reference_broker.protocol.errors import error_code
from reference_broker.protocol.metadata_records import PartitionChangeRecord
from tests.reference_broker.controller.scripted_controller import ScriptedController


@pytest.fixture
def controller():
    """Return a controller with four brokers, and a partition of three replicas that broker 1 leads in epoch 0."""
    scripted = ScriptedController()
    scripted.serve(1, 2, 3, 4)
    scripted.create("orders", "123")
    return scripted


def test_the_isr_shrinks_and_grows_in_one_leader_epoch(controller):
    response = controller.propose("orders", "12")
    assert (response.error_code, response.isr, response.leader_id) == (0, (1, 2), 1)
    assert (response.leader_epoch, response.partition_epoch) == (0, 1)
    response = controller.propose("orders", "132")
    assert (response.isr, response.leader_epoch, response.partition_epoch) == ((1, 3, 2), 0, 2)


def test_a_proposal_without_a_change_succeeds_and_writes_nothing(controller):
    end_offset = controller.log.end_offset
    response = controller.propose("orders", "123")
    assert (response.error_code, response.partition_epoch) == (0, 0)
    assert controller.log.end_offset == end_offset


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"topic_id": UUID(int=7)}, "UNKNOWN_TOPIC_ID"),
        ({"partition_index": 1}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"leader_epoch": 6}, "NOT_CONTROLLER"),
        ({"partition_epoch": 6}, "NOT_CONTROLLER"),
        ({"leader_epoch": -1}, "FENCED_LEADER_EPOCH"),
        ({"broker_id": 2}, "INVALID_REQUEST"),
        ({"partition_epoch": -1}, "INVALID_UPDATE_VERSION"),
        ({"isr": ""}, "INVALID_REQUEST"),
        ({"isr": "11"}, "INVALID_REQUEST"),
        ({"isr": "14"}, "INVALID_REQUEST"),
        ({"isr": "23"}, "INVALID_REQUEST"),
        ({"isr": "1", "leader_recovery_state": LeaderRecoveryState.RECOVERING}, "INVALID_REQUEST"),
        ({"epochs": {2: 1_000}}, "INELIGIBLE_REPLICA"),
    ],
)
def test_invalid_proposals_are_rejected(controller, wrong, error):
    end_offset = controller.log.end_offset
    assert controller.propose("orders", **{"isr": "12", **wrong}).error_code == error_code(error)
    assert controller.log.end_offset == end_offset


def test_the_first_failed_check_determines_the_error(controller):
    """Each line fixes the problem of the line before."""
    wrong = {"isr": "4", "broker_id": 2, "leader_epoch": -1, "partition_epoch": 6, "partition_index": 1}
    fixes = [
        ({}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition_index": 0}, "NOT_CONTROLLER"),
        ({"partition_epoch": -1}, "FENCED_LEADER_EPOCH"),
        ({"leader_epoch": 0}, "INVALID_REQUEST"),
        ({"broker_id": 1}, "INVALID_UPDATE_VERSION"),
        ({"partition_epoch": 0}, "INVALID_REQUEST"),
        ({"isr": "12", "epochs": {2: 1_000}}, "INELIGIBLE_REPLICA"),
        ({"epochs": {}}, "NONE"),
    ]
    for fix, error in fixes:
        wrong |= fix
        assert controller.propose("orders", **wrong).error_code == error_code(error), fix


def test_broker_epoch_minus_one_is_not_checked(controller):
    """A leader sends -1 if it does not know the epoch; version 2 sends -1 for every member."""
    assert controller.propose("orders", "12", epochs={2: -1}).error_code == 0


def test_a_stale_broker_epoch_rejects_the_whole_request(controller):
    response = controller.propose("orders", "12", broker_epoch=0)
    assert response.error_code == error_code("STALE_BROKER_EPOCH")


def test_a_restarted_replica_is_ineligible_by_its_old_epoch(controller):
    """The leader proposes the epoch from before the restart (KIP-903)."""
    old_epoch = controller.image.brokers[3].broker_epoch
    controller.kill(3)
    controller.serve(3, restarts=1)
    response = controller.propose("orders", "123", epochs={3: old_epoch})
    assert response.error_code == error_code("INELIGIBLE_REPLICA")
    assert controller.propose("orders", "123").error_code == 0


@pytest.mark.parametrize("fields", [{"want_fence": True}, {"want_shut_down": True}])
def test_a_fenced_or_stopping_broker_is_ineligible(controller, fields):
    controller.create("other", "321", isr="3")
    controller.heartbeat(3, **fields)
    assert controller.state("orders") == "123/12/1"
    assert controller.propose("orders", "123").error_code == error_code("INELIGIBLE_REPLICA")


def test_a_recovering_leader_stays_alone_in_the_isr(controller):
    topic_id = controller.create("lost", "123", isr="1")
    recovering = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader_recovery_state=1)
    controller.controller.write([recovering], lambda _: None, controller.now)
    controller.commit()
    assert controller.propose("lost", "12").error_code == error_code("INVALID_REQUEST")
    response = controller.propose("lost", "1", leader_recovery_state=LeaderRecoveryState.RECOVERED)
    assert (response.error_code, response.leader_recovery_state) == (0, 0)
    assert controller.propose("lost", "12").error_code == 0


def test_completing_a_reassignment_returns_new_leader_elected(controller):
    topic_id = controller.create("moving", "3412", isr="12", leader=1)
    begun = PartitionChangeRecord(partition_id=0, topic_id=topic_id, removing_replicas=(1, 2), adding_replicas=(3, 4))
    controller.controller.write([begun], lambda _: None, controller.now)
    assert controller.propose("moving", "123").error_code == 0
    assert controller.state("moving") == "3412/123/1"
    assert controller.propose("moving", "1234").error_code == error_code("NEW_LEADER_ELECTED")
    assert controller.state("moving") == "34/34/3"


def test_version_2_proposes_an_isr_without_broker_epochs(controller):
    partition = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": 0, "new_isr": (1, 3)}
    topics = [{"topic_id": controller.partition("orders").topic_id, "partitions": [partition]}]
    epoch = controller.image.brokers[1].broker_epoch
    response = controller.request("AlterPartition", 2, broker_id=1, broker_epoch=epoch, topics=topics)
    assert response.topics[0].partitions[0].isr == (1, 3)


def test_a_fenced_leader_gets_fenced_leader_epoch(controller):
    """The leader has not applied the record of its fencing yet, and proposes to remove other replicas."""
    known = controller.partition("orders")
    controller.kill(1)
    assert controller.state("orders") == "123/23/2"
    response = controller.propose("orders", "1", broker_id=1, leader_epoch=known.leader_epoch, partition_epoch=0)
    assert response.error_code == error_code("FENCED_LEADER_EPOCH")
