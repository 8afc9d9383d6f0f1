"""Registration, sessions, fencing and shutdown of brokers, registration of controllers, and blocks of producer ids."""

from uuid import UUID

import pytest

from reference_broker.core.controller.broker_heartbeat_manager import TRANSITIONS, BrokerControlState, DesiredState
from reference_broker.protocol.errors import error_code
from reference_broker.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.reference_broker.controller.scripted_controller import (
    FEATURES,
    HEARTBEAT_MS,
    SESSION_MS,
    ScriptedController,
    directory,
    incarnation,
)


@pytest.fixture
def controller():
    return ScriptedController()


# Registration


def test_a_registered_broker_is_fenced_and_its_epoch_is_the_offset_of_its_registration(controller):
    offset = controller.log.end_offset
    assert controller.register(1, rack="a").broker_epoch == offset
    record = controller.log.records[offset]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.rack) == (offset, True, "a")
    assert record.log_dirs == (directory(1),)
    assert [(endpoint.name, endpoint.host, endpoint.port) for endpoint in record.end_points] == [
        ("REPLICATION", "b1", 9093)
    ]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"cluster_id": "another"}, "INCONSISTENT_CLUSTER_ID"),
        ({"is_migrating_zk_broker": True}, "BROKER_ID_NOT_REGISTERED"),
        ({"log_dirs": ()}, "INVALID_REGISTRATION"),
        ({"log_dirs": (None,)}, "INVALID_REGISTRATION"),
        ({"log_dirs": (UUID(int=99),)}, "INVALID_REGISTRATION"),
        ({"log_dirs": (directory(1), directory(1))}, "INVALID_REGISTRATION"),
        ({"log_dirs": (directory(2),)}, "INVALID_REGISTRATION"),
        ({"features": [FEATURES[0] | {"max_supported_version": 29}]}, "UNSUPPORTED_VERSION"),
        ({"features": [*FEATURES, FEATURES[0] | {"name": "new", "min_supported_version": 1}]}, "UNSUPPORTED_VERSION"),
        ({"features": []}, "INVALID_REGISTRATION"),
    ],
)
def test_invalid_registrations_are_rejected(controller, wrong, error):
    controller.serve(2)
    end_offset = controller.log.end_offset
    assert controller.register(1, **wrong).error_code == error_code(error)
    assert controller.log.end_offset == end_offset


def test_the_first_failed_check_determines_the_error(controller):
    controller.serve(1)
    wrong = {"cluster_id": "another", "log_dirs": (), "features": []}
    assert controller.register(1, restarts=1, **wrong).error_code == error_code("INCONSISTENT_CLUSTER_ID")
    del wrong["cluster_id"]
    assert controller.register(1, restarts=1, **wrong).error_code == error_code("DUPLICATE_BROKER_REGISTRATION")


def test_another_incarnation_is_rejected_until_the_session_has_expired(controller):
    controller.serve(1)
    controller.advance(SESSION_MS)
    assert controller.register(1, restarts=1).error_code == error_code("DUPLICATE_BROKER_REGISTRATION")
    controller.advance(1)
    assert controller.register(1, restarts=1).error_code == 0


def test_a_broker_can_register_again_right_after_its_shutdown(controller):
    controller.serve(1)
    assert controller.heartbeat(1, want_shut_down=True).should_shut_down
    epoch = controller.image.brokers[1].broker_epoch
    assert controller.register(1, restarts=1).broker_epoch > epoch


def test_an_incarnation_that_registers_again_keeps_its_epoch_and_stays_unfenced(controller):
    controller.serve(1)
    epoch = controller.image.brokers[1].broker_epoch
    assert controller.register(1, rack="b").broker_epoch == epoch
    assert not controller.image.brokers[1].fenced
    assert controller.image.brokers[1].rack == "b"


def test_a_new_incarnation_leads_nothing_and_is_removed_from_each_isr_with_other_members(controller):
    controller.serve(1, 2)
    controller.create("orders", "12")
    controller.create("alone", "1")
    controller.keep_alive(2, for_ms=SESSION_MS - 1_000)
    controller.heartbeat(1, want_fence=True)
    # An older controller may have left this state: broker 1 is fenced, but it is in the ISR and leads.
    controller.image.apply(
        PartitionChangeRecord(partition_id=0, topic_id=controller.partition("orders").topic_id, isr=(1, 2), leader=1)
    )
    controller.register(1, restarts=1)
    assert controller.state("orders") == "12/2/2"
    assert controller.state("alone") == "1/1/-"
    assert isinstance(controller.log.records[-1], RegisterBrokerRecord)


# Sessions


def test_a_broker_is_unfenced_when_it_has_applied_its_registration_unless_it_wants_to_be_fenced(controller):
    epoch = controller.register(1).broker_epoch
    response = controller.heartbeat(1, current_metadata_offset=epoch - 1)
    assert (response.is_caught_up, response.is_fenced) == (False, True)
    response = controller.heartbeat(1, current_metadata_offset=epoch, want_fence=True)
    assert (response.is_caught_up, response.is_fenced) == (True, True)
    response = controller.heartbeat(1, current_metadata_offset=epoch)
    assert (response.is_caught_up, response.is_fenced) == (True, False)
    assert controller.log.records[-1] == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)


def test_heartbeats_of_an_unfenced_broker_write_nothing(controller):
    controller.serve(1)
    end_offset = controller.log.end_offset
    controller.keep_alive(1, for_ms=3 * SESSION_MS)
    assert controller.log.end_offset == end_offset


@pytest.mark.parametrize("epoch", [-1, 0, 99])
def test_a_heartbeat_with_another_broker_epoch_is_rejected(controller, epoch):
    controller.serve(1)
    assert controller.heartbeat(1, broker_epoch=epoch).error_code == error_code("STALE_BROKER_EPOCH")


def test_a_heartbeat_of_an_unregistered_broker_is_rejected(controller):
    response = controller.request("BrokerHeartbeat", 1, broker_id=9, broker_epoch=0, current_metadata_offset=0)
    assert response.error_code == error_code("STALE_BROKER_EPOCH")


def test_an_expired_broker_is_fenced_and_loses_its_leaderships_in_one_batch(controller):
    controller.serve(1, 2, 3)
    topic_id = controller.create("orders", "123")
    controller.keep_alive(2, 3, for_ms=SESSION_MS - 1_000)
    end_offset = controller.log.end_offset
    controller.advance(1_000)
    assert controller.log.end_offset == end_offset
    controller.advance(1)
    assert controller.log.records[end_offset:] == [
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=(2, 3), leader=2),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=controller.image.brokers[1].broker_epoch, fenced=1),
    ]


def test_a_broker_is_fenced_on_request(controller):
    controller.serve(1, 2)
    controller.create("orders", "12")
    assert controller.heartbeat(1, want_fence=True).is_fenced
    assert controller.state("orders") == "12/2/2"


def test_the_last_in_sync_replica_stays_in_the_isr_and_leads_when_it_returns(controller):
    controller.serve(1, 2)
    controller.create("orders", "12")
    controller.kill(2)
    controller.keep_alive(for_ms=SESSION_MS + HEARTBEAT_MS)
    assert controller.state("orders") == "12/1/-"
    controller.serve(2, restarts=1)
    assert controller.state("orders") == "12/1/-"
    controller.serve(1, restarts=1)
    assert controller.state("orders") == "12/1/1"
    assert controller.partition("orders").leader_epoch == 2


def test_a_new_controller_starts_a_session_for_every_broker(controller):
    controller.serve(1, 2)
    controller.keep_alive(2, for_ms=SESSION_MS - 1_000)
    controller.fail_over()
    controller.keep_alive(2, for_ms=SESSION_MS - 1_000)
    assert not controller.image.brokers[1].fenced
    controller.keep_alive(2, for_ms=HEARTBEAT_MS)
    assert controller.image.brokers[1].fenced
    assert not controller.image.brokers[2].fenced


def test_a_controller_whose_process_was_stopped_handles_pending_heartbeats_before_it_fences_brokers(controller):
    controller.serve(1, 2)
    controller.stop_process(60_000)
    assert not controller.image.brokers[1].fenced
    controller.heartbeat(1)
    controller.advance(1_000)
    assert [controller.image.brokers[broker_id].fenced for broker_id in (1, 2)] == [False, True]


# Controlled shutdown


def test_a_broker_that_leads_nothing_shuts_down_at_once(controller):
    controller.serve(1, 2)
    controller.create("orders", "21")
    response = controller.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert controller.state("orders") == "21/2/2"


def test_a_leader_shuts_down_when_all_other_brokers_have_applied_the_change_of_leader(controller):
    controller.serve(1, 2, 3)
    controller.create("orders", "123")
    offset_before_change = controller.log.end_offset - 1
    response = controller.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (False, False)
    assert controller.image.brokers[1].in_controlled_shutdown
    assert controller.state("orders") == "123/23/2"
    controller.heartbeat(2)
    controller.heartbeat(3, current_metadata_offset=offset_before_change)
    assert not controller.heartbeat(1, want_shut_down=True).should_shut_down
    controller.heartbeat(3)
    response = controller.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert controller.image.brokers[1].fenced


def test_a_leader_shuts_down_even_if_no_other_replica_can_lead(controller):
    controller.serve(1, 2)
    controller.create("orders", "12", isr="1")
    assert not controller.heartbeat(1, want_shut_down=True).should_shut_down
    assert controller.state("orders") == "12/1/-"
    controller.heartbeat(2)
    assert controller.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_controlled_shutdown_continues_under_a_new_controller(controller):
    controller.serve(1, 2)
    controller.create("orders", "12")
    controller.heartbeat(1, want_shut_down=True)
    controller.fail_over()
    assert controller.heartbeat(1, want_shut_down=True).should_shut_down


def test_the_transition_table_covers_every_state_and_desired_state():
    states = set(BrokerControlState) - {BrokerControlState.SHUTDOWN_NOW}
    assert set(TRANSITIONS) == {(state, desired) for state in states for desired in DesiredState}
    assert all(rows[-1][0].name == "ALWAYS" for rows in TRANSITIONS.values())


# Unregistration, controllers, producer ids


def test_a_broker_is_unregistered(controller):
    controller.serve(1, 2)
    controller.create("orders", "12")
    epoch = controller.image.brokers[1].broker_epoch
    assert controller.request("UnregisterBroker", 0, broker_id=1).error_code == 0
    assert 1 not in controller.image.brokers
    assert controller.state("orders") == "12/2/2"
    response = controller.request("BrokerHeartbeat", 1, broker_id=1, broker_epoch=epoch, current_metadata_offset=9)
    assert response.error_code == error_code("STALE_BROKER_EPOCH")
    response = controller.request("UnregisterBroker", 0, broker_id=1)
    assert response.error_code == error_code("BROKER_ID_NOT_REGISTERED")


def test_a_controller_registers(controller):
    requested = {"controller_id": 3, "incarnation_id": incarnation(3), "features": FEATURES, "listeners": []}
    assert controller.request("ControllerRegistration", 0, **requested).error_code == 0
    assert controller.image.controllers[3].incarnation_id == incarnation(3)


def test_each_block_of_producer_ids_is_allocated_once_even_after_a_failover(controller):
    controller.serve(1, 2)
    blocks = []
    for broker_id in (1, 2, 1):
        epoch = controller.image.brokers[broker_id].broker_epoch
        response = controller.request("AllocateProducerIds", 0, broker_id=broker_id, broker_epoch=epoch)
        blocks.append((response.producer_id_start, response.producer_id_len))
        controller.fail_over()
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]
    response = controller.request("AllocateProducerIds", 0, broker_id=1, broker_epoch=99)
    assert response.error_code == error_code("STALE_BROKER_EPOCH")
