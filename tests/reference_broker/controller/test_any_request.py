"""Every request to the controller's listener gets a response that can be encoded."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference_broker.core.api import Part
from reference_broker.core.apis import CONTROLLER_APIS
from reference_broker.core.connection import Connection
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.messages import message_codec
from reference_broker.protocol.metadata_records import encode_metadata_record
from tests.reference_broker.controller.scripted_controller import ScriptedController
from tests.reference_broker.scripted import any_request

VERSIONS = [(api.key, api.max_version) for api in CONTROLLER_APIS.values() if api.part is Part.CONTROLLER]


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_any_request_gets_a_response(key, version, data):
    controller = ScriptedController()
    controller.serve(1)
    controller.create("orders", "1")
    body, codec = data.draw(any_request(key, version)), message_codec(key, version)
    received = Request(Connection(is_controller=True), key, version, 7, "test", body, codec.replies)
    response = CONTROLLER_APIS[key].handle(controller.controller, received, controller.now)
    if response is RequestOutcome.DEFERRED:
        controller.commit()
        response = controller.runtime.responses[7]
    assert codec.write(7, response)
    for record in controller.log.records:
        assert encode_metadata_record(record)
