"""Deferred responses: they are sent when the records that they depend on are committed.

If the controller is deactivated before, the response is NOT_CONTROLLER.
"""

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import error_code
from reference_broker.protocol.metadata_records import FeatureLevelRecord
from tests.reference_broker.controller.scripted_controller import CLUSTER, FEATURES, ScriptedController, incarnation


def send_registration(controller, broker_id):
    """Register a broker without a commit, and return the correlation id."""
    fields = {
        "cluster_id": CLUSTER,
        "incarnation_id": incarnation(broker_id),
        "log_dirs": (incarnation(broker_id),),
        "features": FEATURES,
    }
    return controller.send("BrokerRegistration", 4, broker_id=broker_id, **fields)


def test_the_first_controller_writes_the_feature_levels():
    controller = ScriptedController()
    assert controller.log.records == [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    controller.fail_over()
    assert len(controller.log.records) == 1


def test_a_response_waits_for_the_commit():
    controller = ScriptedController()
    correlation_id = send_registration(controller, 1)
    assert controller.runtime.responses == {}
    controller.controller.handle_commit(controller.log.end_offset - 1, controller.now)
    assert controller.runtime.responses == {}
    controller.commit()
    assert controller.runtime.responses[correlation_id].broker_epoch == 1


def test_a_decision_without_records_waits_for_the_records_that_it_depends_on():
    controller = ScriptedController()
    controller.register(1)
    send_registration(controller, 2)
    heartbeat = controller.send("BrokerHeartbeat", 1, **controller.heartbeat_fields(1, want_fence=True))
    assert controller.runtime.responses == {}
    controller.commit()
    assert controller.runtime.responses[heartbeat].is_fenced


def test_a_decision_without_records_responds_at_once_if_everything_is_committed():
    controller = ScriptedController()
    controller.register(1)
    heartbeat = controller.send("BrokerHeartbeat", 1, **controller.heartbeat_fields(1, want_fence=True))
    assert controller.runtime.responses[heartbeat].is_fenced


def test_a_decision_builds_on_uncommitted_records():
    controller = ScriptedController()
    send_registration(controller, 1)
    correlation_id = send_registration(controller, 2)
    controller.commit()
    assert controller.runtime.responses[correlation_id].broker_epoch == 2


def test_a_deactivated_controller_rejects_all_waiting_requests():
    controller = ScriptedController()
    correlation_ids = [send_registration(controller, 1), send_registration(controller, 2)]
    controller.controller.deactivate(controller.now)
    controller.commit()
    assert [controller.runtime.responses[correlation_id].error_code for correlation_id in correlation_ids] == [
        error_code("NOT_CONTROLLER")
    ] * 2
    assert controller.image.brokers == {}


def test_a_standby_controller_returns_not_controller():
    controller = ScriptedController()
    controller.controller.deactivate(controller.now)
    assert controller.register(1).error_code == error_code("NOT_CONTROLLER")
    assert not controller.controller.is_active


def test_uncommitted_records_are_discarded_with_their_controller():
    controller = ScriptedController()
    send_registration(controller, 1)
    controller.controller.deactivate(controller.now)
    controller.controller.activate(2, MetadataImage(), controller.now)
    assert controller.image.brokers == {}
