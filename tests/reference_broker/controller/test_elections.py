"""Who leads, and when that changes without a broker's asking. Partitions are told as `replicas/ISR/leader`."""

import pytest

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.elections import ElectionType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partition_changes import LeaderRecoveryState
from reference_broker.protocol.errors import error_code
from reference_broker.protocol.metadata_records import NoOpRecord
from tests.reference_broker.controller.scripted_controller import SESSION_MS, ScriptedController, directory

UNCLEAN = "unclean.leader.election.enable"


def with_lost_leader(**properties):
    """1 was the last in sync, and is gone; 2 is alive."""
    controller = ScriptedController(**properties)
    controller.serve(1, 2)
    controller.create("orders", "12", isr="1")
    controller.kill(1)
    return controller


def test_a_replica_out_of_sync_does_not_lead():
    assert with_lost_leader().told("orders") == "12/1/-"


def test_unless_the_cluster_permits_it():
    controller = with_lost_leader(unclean_leader_election_enable="true")
    assert controller.told("orders") == "12/2/2"
    assert controller.partition("orders").leader_recovery_state == LeaderRecoveryState.RECOVERING


@pytest.mark.parametrize(
    ("resource_type", "resource"),
    [(ResourceType.TOPIC, "orders"), (ResourceType.BROKER, ""), (ResourceType.BROKER, "0")],
)
def test_it_leads_as_soon_as_a_setting_permits_it(resource_type, resource):
    controller = with_lost_leader()
    controller.configure(resource_type, resource, UNCLEAN, "true")
    assert controller.told("orders") == "12/2/2"


def test_the_topic_has_the_last_word():
    controller = with_lost_leader()
    controller.configure(ResourceType.TOPIC, "orders", UNCLEAN, "false")
    controller.configure(ResourceType.BROKER, "", UNCLEAN, "true")
    assert controller.told("orders") == "12/1/-"
    controller.configure(ResourceType.TOPIC, "orders", UNCLEAN, None)
    assert controller.told("orders") == "12/2/2"


def test_another_broker_s_setting_is_none_of_the_controllers():
    controller = with_lost_leader()
    controller.configure(ResourceType.BROKER, "2", UNCLEAN, "true")
    assert controller.told("orders") == "12/1/-"


def test_a_broker_that_comes_leads_where_it_is_permitted():
    controller = ScriptedController()
    controller.serve(1, 2)
    controller.create("orders", "123", isr="1")
    controller.configure(ResourceType.TOPIC, "orders", UNCLEAN, "true")
    controller.heartbeat(2, want_shut_down=True)
    controller.heartbeat(1, want_fence=True)
    assert controller.told("orders") == "123/1/-"
    controller.serve(3)
    assert controller.told("orders") == "123/3/3"


def test_a_new_controller_elects_what_the_old_one_had_not_after_an_interval():
    """`PeriodicTaskControlManager.activate` begins each periodic task with its delay."""
    controller = ScriptedController()
    controller.serve(2)
    controller.create("orders", "12", isr="1", leader=-1)
    controller.runtime.configuration = type(controller.runtime.configuration)(
        {UNCLEAN: "true", "unclean.leader.election.interval.ms": "1000"}
    )
    controller.fail_over()
    controller.advance(999)
    assert controller.told("orders") == "12/1/-"
    controller.advance(1)
    assert controller.told("orders") == "12/2/2"


# ElectLeaders: the decision


def elected(controller, election_type):
    change = controller.controller.elections.elect_leader("orders", 0, election_type)
    controller.controller.write([change], lambda _: None, controller.now)
    return controller.told("orders")


@pytest.mark.parametrize(
    ("isr", "leader", "election_type", "becomes"),
    [
        ("12", 2, ElectionType.PREFERRED, "12/12/1"),
        ("12", 1, ElectionType.PREFERRED, "ELECTION_NOT_NEEDED"),
        ("2", 2, ElectionType.PREFERRED, "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("12", 2, ElectionType.UNCLEAN, "ELECTION_NOT_NEEDED"),
        ("2", -1, ElectionType.UNCLEAN, "12/2/2"),
        ("3", -1, ElectionType.UNCLEAN, "12/1/1"),
    ],
)
def test_an_administrator_wants_an_election(isr, leader, election_type, becomes):
    controller = ScriptedController()
    controller.serve(1, 2)
    controller.create("orders", "12", isr=isr, leader=leader)
    if "/" in becomes:
        assert elected(controller, election_type) == becomes
    else:
        with pytest.raises(ControllerError) as refused:
            elected(controller, election_type)
        assert refused.value.code == error_code(becomes)


def test_nobody_can_be_elected():
    controller = ScriptedController()
    controller.serve(3)
    controller.create("orders", "12", leader=-1)
    with pytest.raises(ControllerError) as refused:
        elected(controller, ElectionType.UNCLEAN)
    assert refused.value.code == error_code("ELIGIBLE_LEADERS_NOT_AVAILABLE")


@pytest.mark.parametrize(("topic", "index"), [("orders", 1), ("other", 0)])
def test_what_does_not_exist_has_no_leader(topic, index):
    controller = ScriptedController()
    controller.serve(1)
    controller.create("orders", "1")
    with pytest.raises(ControllerError) as refused:
        controller.controller.elections.elect_leader(topic, index, ElectionType.PREFERRED)
    assert refused.value.code == error_code("UNKNOWN_TOPIC_OR_PARTITION")


# Timers


def test_first_replicas_lead_again_after_a_while():
    controller = ScriptedController(leader_imbalance_check_interval_seconds="5")
    controller.serve(1, 2)
    controller.create("orders", "12", leader=2)
    controller.create("others", "12", isr="2", leader=2)
    controller.advance(4_000)
    assert controller.told("orders") == "12/12/2"
    controller.advance(1_000)
    assert controller.told("orders") == "12/12/1"
    assert controller.told("others") == "12/2/2"
    controller.create("more", "12", leader=2)
    controller.keep_alive(1, 2, for_ms=6_000)
    assert controller.told("more") == "12/12/1"


def test_leaders_stay_where_they_are_if_that_is_wanted():
    controller = ScriptedController(leader_imbalance_check_interval_seconds="5", auto_leader_rebalance_enable="false")
    controller.serve(1, 2)
    controller.create("orders", "12", leader=2)
    controller.keep_alive(1, 2, for_ms=2 * SESSION_MS)
    assert controller.told("orders") == "12/12/2"


def test_an_idle_controller_writes_that_it_lives():
    controller = ScriptedController(metadata_max_idle_interval_ms="500")
    end_offset = controller.log.end_offset
    controller.advance(1_600)
    assert controller.log.records[end_offset:] == [NoOpRecord()] * 3
    controller.controller.deactivate(controller.now)
    controller.advance(1_000)
    assert controller.log.end_offset == end_offset + 3


# Directories (KIP-858)


def test_a_replica_in_a_directory_that_its_broker_lacks_does_not_lead():
    """Its disk was replaced: what the replica had is gone."""
    controller = ScriptedController()
    controller.serve(1, 2)
    controller.create("orders", "12")
    controller.kill(1)
    controller.kill(2)
    assert controller.told("orders") == "12/2/-"
    controller.register(2, life=1, log_dirs=(directory(22),))
    controller.heartbeat(2)
    assert controller.told("orders") == "12/2/-"


def test_it_leads_when_its_broker_has_said_where_it_lies_now():
    controller = ScriptedController()
    controller.serve(1, 2)
    topic_id = controller.create("orders", "12")
    controller.kill(1)
    controller.register(1, life=1, log_dirs=(directory(11),))
    controller.heartbeat(1)

    def assign(broker_id, topic_id, index):
        topics = [{"topic_id": topic_id, "partitions": [{"partition_index": index}]}]
        epoch = controller.image.brokers[broker_id].broker_epoch
        directories = [{"id_": directory(11), "topics": topics}]
        asked = {"broker_id": broker_id, "broker_epoch": epoch, "directories": directories}
        answer = controller.ask("AssignReplicasToDirs", 0, **asked)
        return answer.directories[0].topics[0].partitions[0].error_code

    controller.serve(3)
    assert assign(1, directory(5), 0) == error_code("UNKNOWN_TOPIC_ID")
    assert assign(1, topic_id, 1) == error_code("UNKNOWN_TOPIC_OR_PARTITION")
    assert assign(3, topic_id, 0) == error_code("NOT_LEADER_OR_FOLLOWER")
    assert assign(1, topic_id, 0) == 0
    now = controller.partition("orders")
    assert (now.directories, now.leader_epoch, now.partition_epoch) == ((directory(11), directory(2)), 1, 2)
    assert controller.propose("orders", "21").error_code == 0
    assert elected(controller, ElectionType.PREFERRED) == "12/21/1"
