"""A leader changes its in-sync replicas, or is told why not."""

from uuid import UUID

import pytest

from reference_broker.core.controller.partition_changes import LeaderRecoveryState
from reference_broker.protocol.errors import error_code
from reference_broker.protocol.metadata_records import PartitionChangeRecord
from tests.reference_broker.controller.scripted_controller import ScriptedController


@pytest.fixture
def controller():
    """Four brokers, and a partition of three that 1 leads, in its epoch 0."""
    scripted = ScriptedController()
    scripted.serve(1, 2, 3, 4)
    scripted.create("orders", "123")
    return scripted


def test_the_isr_shrinks_and_grows_in_one_leader_epoch(controller):
    answer = controller.propose("orders", "12")
    assert (answer.error_code, answer.isr, answer.leader_id) == (0, (1, 2), 1)
    assert (answer.leader_epoch, answer.partition_epoch) == (0, 1)
    answer = controller.propose("orders", "132")
    assert (answer.isr, answer.leader_epoch, answer.partition_epoch) == ((1, 3, 2), 0, 2)


def test_what_changes_nothing_is_answered_and_not_written(controller):
    end_offset = controller.log.end_offset
    answer = controller.propose("orders", "123")
    assert (answer.error_code, answer.partition_epoch) == (0, 0)
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
def test_a_proposal_is_refused(controller, wrong, error):
    end_offset = controller.log.end_offset
    assert controller.propose("orders", **{"isr": "12", **wrong}).error_code == error_code(error)
    assert controller.log.end_offset == end_offset


def test_the_first_thing_that_is_wrong_is_the_answer(controller):
    """Each line takes away what was the answer before."""
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


def test_a_broker_epoch_that_is_not_checked(controller):
    """A leader that does not know it says -1; so does version 2 of every member."""
    assert controller.propose("orders", "12", epochs={2: -1}).error_code == 0


def test_a_stale_leader_is_refused_as_a_whole(controller):
    answer = controller.propose("orders", "12", broker_epoch=0)
    assert answer.error_code == error_code("STALE_BROKER_EPOCH")


def test_a_restarted_replica_does_not_come_in_by_its_id(controller):
    """The leader proposes what it saw before the restart (KIP-903)."""
    old_epoch = controller.image.brokers[3].broker_epoch
    controller.kill(3)
    controller.serve(3, life=1)
    answer = controller.propose("orders", "123", epochs={3: old_epoch})
    assert answer.error_code == error_code("INELIGIBLE_REPLICA")
    assert controller.propose("orders", "123").error_code == 0


@pytest.mark.parametrize("wish", [{"want_fence": True}, {"want_shut_down": True}])
def test_a_broker_that_is_fenced_or_leaving_does_not_come_in(controller, wish):
    controller.create("other", "321", isr="3")
    controller.heartbeat(3, **wish)
    assert controller.told("orders") == "123/12/1"
    assert controller.propose("orders", "123").error_code == error_code("INELIGIBLE_REPLICA")


def test_a_leader_that_recovers_is_alone_until_it_has(controller):
    topic_id = controller.create("lost", "123", isr="1")
    recovering = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader_recovery_state=1)
    controller.controller.write([recovering], lambda _: None, controller.now)
    controller.commit()
    assert controller.propose("lost", "12").error_code == error_code("INVALID_REQUEST")
    answer = controller.propose("lost", "1", leader_recovery_state=LeaderRecoveryState.RECOVERED)
    assert (answer.error_code, answer.leader_recovery_state) == (0, 0)
    assert controller.propose("lost", "12").error_code == 0


def test_completing_a_reassignment_tells_the_leader_that_it_is_one_no_more(controller):
    topic_id = controller.create("moving", "3412", isr="12", leader=1)
    begun = PartitionChangeRecord(partition_id=0, topic_id=topic_id, removing_replicas=(1, 2), adding_replicas=(3, 4))
    controller.controller.write([begun], lambda _: None, controller.now)
    assert controller.propose("moving", "123").error_code == 0
    assert controller.told("moving") == "3412/123/1"
    assert controller.propose("moving", "1234").error_code == error_code("NEW_LEADER_ELECTED")
    assert controller.told("moving") == "34/34/3"


def test_versions_before_broker_epochs(controller):
    partition = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": 0, "new_isr": (1, 3)}
    topics = [{"topic_id": controller.partition("orders").topic_id, "partitions": [partition]}]
    epoch = controller.image.brokers[1].broker_epoch
    answer = controller.ask("AlterPartition", 2, broker_id=1, broker_epoch=epoch, topics=topics)
    assert answer.topics[0].partitions[0].isr == (1, 3)


def test_a_fenced_leader_is_told_so(controller):
    """It does not know yet that it was fenced, and wants others out."""
    known = controller.partition("orders")
    controller.kill(1)
    assert controller.told("orders") == "123/23/2"
    answer = controller.propose("orders", "1", broker_id=1, leader_epoch=known.leader_epoch, partition_epoch=0)
    assert answer.error_code == error_code("FENCED_LEADER_EPOCH")
