"""An answer is given when all that it rests upon is committed, and NOT_CONTROLLER if that is not to be."""

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import error_code
from reference_broker.protocol.metadata_records import FeatureLevelRecord
from tests.reference_broker.controller.scripted_controller import CLUSTER, FEATURES, ScriptedController, incarnation


def registration(controller, broker_id):
    fields = {
        "cluster_id": CLUSTER,
        "incarnation_id": incarnation(broker_id),
        "log_dirs": (incarnation(broker_id),),
        "features": FEATURES,
    }
    return controller.send("BrokerRegistration", 4, broker_id=broker_id, **fields)


def test_the_first_controller_of_a_cluster_begins_with_its_features():
    controller = ScriptedController()
    assert controller.log.records == [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    controller.fail_over()
    assert len(controller.log.records) == 1


def test_an_answer_waits_for_the_commit():
    controller = ScriptedController()
    number = registration(controller, 1)
    assert controller.runtime.answers == {}
    controller.controller.handle_commit(controller.log.end_offset - 1, controller.now)
    assert controller.runtime.answers == {}
    controller.commit()
    assert controller.runtime.answers[number].broker_epoch == 1


def test_a_decision_that_writes_nothing_waits_for_what_it_saw():
    controller = ScriptedController()
    controller.register(1)
    registration(controller, 2)
    heartbeat = controller.send("BrokerHeartbeat", 1, **controller.heartbeat_fields(1, want_fence=True))
    assert controller.runtime.answers == {}
    controller.commit()
    assert controller.runtime.answers[heartbeat].is_fenced


def test_a_decision_that_writes_nothing_and_waits_for_nothing_is_answered_at_once():
    controller = ScriptedController()
    controller.register(1)
    heartbeat = controller.send("BrokerHeartbeat", 1, **controller.heartbeat_fields(1, want_fence=True))
    assert controller.runtime.answers[heartbeat].is_fenced


def test_a_decision_builds_on_what_is_not_committed_yet():
    controller = ScriptedController()
    registration(controller, 1)
    number = registration(controller, 2)
    controller.commit()
    assert controller.runtime.answers[number].broker_epoch == 2


def test_a_deposed_controller_tells_all_that_wait():
    controller = ScriptedController()
    numbers = [registration(controller, 1), registration(controller, 2)]
    controller.controller.deactivate(controller.now)
    controller.commit()
    assert [controller.runtime.answers[number].error_code for number in numbers] == [error_code("NOT_CONTROLLER")] * 2
    assert controller.image.brokers == {}


def test_a_controller_on_standby_decides_nothing():
    controller = ScriptedController()
    controller.controller.deactivate(controller.now)
    assert controller.register(1).error_code == error_code("NOT_CONTROLLER")
    assert not controller.controller.is_active


def test_what_a_deposed_controller_had_not_committed_is_not_seen_by_the_next():
    controller = ScriptedController()
    registration(controller, 1)
    controller.controller.deactivate(controller.now)
    controller.controller.activate(2, MetadataImage(), controller.now)
    assert controller.image.brokers == {}
