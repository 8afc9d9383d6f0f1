"""Leader elections. Partition states are written `replicas/ISR/leader`."""

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
    """Return a controller with two brokers: broker 1, the last in-sync replica, is fenced, and broker 2 is active."""
    controller = ScriptedController(**properties)
    controller.serve(1, 2)
    controller.create("orders", "12", isr="1")
    controller.kill(1)
    return controller


def test_a_replica_outside_of_the_isr_does_not_lead():
    assert with_lost_leader().state("orders") == "12/1/-"


def test_an_unclean_leader_is_elected_if_the_cluster_permits_it():
    controller = with_lost_leader(unclean_leader_election_enable="true")
    assert controller.state("orders") == "12/2/2"
    assert controller.partition("orders").leader_recovery_state == LeaderRecoveryState.RECOVERING


@pytest.mark.parametrize(
    ("resource_type", "resource"),
    [(ResourceType.TOPIC, "orders"), (ResourceType.BROKER, ""), (ResourceType.BROKER, "0")],
)
def test_an_unclean_leader_is_elected_when_a_property_permits_it(resource_type, resource):
    controller = with_lost_leader()
    controller.configure(resource_type, resource, UNCLEAN, "true")
    assert controller.state("orders") == "12/2/2"


def test_the_topic_property_takes_precedence():
    controller = with_lost_leader()
    controller.configure(ResourceType.TOPIC, "orders", UNCLEAN, "false")
    controller.configure(ResourceType.BROKER, "", UNCLEAN, "true")
    assert controller.state("orders") == "12/1/-"
    controller.configure(ResourceType.TOPIC, "orders", UNCLEAN, None)
    assert controller.state("orders") == "12/2/2"


def test_the_property_of_another_broker_is_ignored():
    controller = with_lost_leader()
    controller.configure(ResourceType.BROKER, "2", UNCLEAN, "true")
    assert controller.state("orders") == "12/1/-"


def test_an_unfenced_broker_is_elected_uncleanly_if_permitted():
    controller = ScriptedController()
    controller.serve(1, 2)
    controller.create("orders", "123", isr="1")
    controller.configure(ResourceType.TOPIC, "orders", UNCLEAN, "true")
    controller.heartbeat(2, want_shut_down=True)
    controller.heartbeat(1, want_fence=True)
    assert controller.state("orders") == "123/1/-"
    controller.serve(3)
    assert controller.state("orders") == "123/3/3"


def test_a_new_controller_elects_uncleanly_after_an_interval():
    """`PeriodicTaskControlManager.activate` runs each task for the first time after its interval."""
    controller = ScriptedController()
    controller.serve(2)
    controller.create("orders", "12", isr="1", leader=-1)
    controller.runtime.configuration = type(controller.runtime.configuration)(
        {UNCLEAN: "true", "unclean.leader.election.interval.ms": "1000"}
    )
    controller.fail_over()
    controller.advance(999)
    assert controller.state("orders") == "12/1/-"
    controller.advance(1)
    assert controller.state("orders") == "12/2/2"


# ElectLeaders: the decision


def elected(controller, election_type):
    change = controller.controller.elections.elect_leader("orders", 0, election_type)
    controller.controller.write([change], lambda _: None, controller.now)
    return controller.state("orders")


@pytest.mark.parametrize(
    ("isr", "leader", "election_type", "result"),
    [
        ("12", 2, ElectionType.PREFERRED, "12/12/1"),
        ("12", 1, ElectionType.PREFERRED, "ELECTION_NOT_NEEDED"),
        ("2", 2, ElectionType.PREFERRED, "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("12", 2, ElectionType.UNCLEAN, "ELECTION_NOT_NEEDED"),
        ("2", -1, ElectionType.UNCLEAN, "12/2/2"),
        ("3", -1, ElectionType.UNCLEAN, "12/1/1"),
    ],
)
def test_requested_elections(isr, leader, election_type, result):
    controller = ScriptedController()
    controller.serve(1, 2)
    controller.create("orders", "12", isr=isr, leader=leader)
    if "/" in result:
        assert elected(controller, election_type) == result
    else:
        with pytest.raises(ControllerError) as raised:
            elected(controller, election_type)
        assert raised.value.code == error_code(result)


def test_an_election_without_an_eligible_leader_is_rejected():
    controller = ScriptedController()
    controller.serve(3)
    controller.create("orders", "12", leader=-1)
    with pytest.raises(ControllerError) as raised:
        elected(controller, ElectionType.UNCLEAN)
    assert raised.value.code == error_code("ELIGIBLE_LEADERS_NOT_AVAILABLE")


@pytest.mark.parametrize(("topic", "index"), [("orders", 1), ("other", 0)])
def test_unknown_partitions_have_no_election(topic, index):
    controller = ScriptedController()
    controller.serve(1)
    controller.create("orders", "1")
    with pytest.raises(ControllerError) as raised:
        controller.controller.elections.elect_leader(topic, index, ElectionType.PREFERRED)
    assert raised.value.code == error_code("UNKNOWN_TOPIC_OR_PARTITION")


# Timers


def test_preferred_leaders_are_elected_after_an_interval():
    controller = ScriptedController(leader_imbalance_check_interval_seconds="5")
    controller.serve(1, 2)
    controller.create("orders", "12", leader=2)
    controller.create("others", "12", isr="2", leader=2)
    controller.advance(4_000)
    assert controller.state("orders") == "12/12/2"
    controller.advance(1_000)
    assert controller.state("orders") == "12/12/1"
    assert controller.state("others") == "12/2/2"
    controller.create("more", "12", leader=2)
    controller.keep_alive(1, 2, for_ms=6_000)
    assert controller.state("more") == "12/12/1"


def test_leaders_stay_without_auto_leader_rebalance():
    controller = ScriptedController(leader_imbalance_check_interval_seconds="5", auto_leader_rebalance_enable="false")
    controller.serve(1, 2)
    controller.create("orders", "12", leader=2)
    controller.keep_alive(1, 2, for_ms=2 * SESSION_MS)
    assert controller.state("orders") == "12/12/2"


def test_an_idle_controller_writes_no_op_records():
    controller = ScriptedController(metadata_max_idle_interval_ms="500")
    end_offset = controller.log.end_offset
    controller.advance(1_600)
    assert controller.log.records[end_offset:] == [NoOpRecord()] * 3
    controller.controller.deactivate(controller.now)
    controller.advance(1_000)
    assert controller.log.end_offset == end_offset + 3


# Directories (KIP-858)


def test_a_replica_in_an_unregistered_directory_does_not_lead():
    """The disk was replaced, so the replica has lost its records."""
    controller = ScriptedController()
    controller.serve(1, 2)
    controller.create("orders", "12")
    controller.kill(1)
    controller.kill(2)
    assert controller.state("orders") == "12/2/-"
    controller.register(2, restarts=1, log_dirs=(directory(22),))
    controller.heartbeat(2)
    assert controller.state("orders") == "12/2/-"


def test_a_replica_can_lead_after_its_directory_is_assigned():
    controller = ScriptedController()
    controller.serve(1, 2)
    topic_id = controller.create("orders", "12")
    controller.kill(1)
    controller.register(1, restarts=1, log_dirs=(directory(11),))
    controller.heartbeat(1)

    def assign(broker_id, topic_id, index):
        topics = [{"topic_id": topic_id, "partitions": [{"partition_index": index}]}]
        epoch = controller.image.brokers[broker_id].broker_epoch
        directories = [{"id_": directory(11), "topics": topics}]
        fields = {"broker_id": broker_id, "broker_epoch": epoch, "directories": directories}
        response = controller.request("AssignReplicasToDirs", 0, **fields)
        return response.directories[0].topics[0].partitions[0].error_code

    controller.serve(3)
    assert assign(1, directory(5), 0) == error_code("UNKNOWN_TOPIC_ID")
    assert assign(1, topic_id, 1) == error_code("UNKNOWN_TOPIC_OR_PARTITION")
    assert assign(3, topic_id, 0) == error_code("NOT_LEADER_OR_FOLLOWER")
    assert assign(1, topic_id, 0) == 0
    now = controller.partition("orders")
    assert (now.directories, now.leader_epoch, now.partition_epoch) == ((directory(11), directory(2)), 1, 2)
    assert controller.propose("orders", "21").error_code == 0
    assert elected(controller, ElectionType.PREFERRED) == "12/21/1"
