"""Every advertised version of every API: the broker decodes kio's requests, and kio decodes the responses.

The requests have arbitrary content: known and unknown topics, invalid names, any numbers. A test fails if a handler
raises an exception, or if a response has surplus bytes. Responses to empty requests must also have the correlation id
of the request; otherwise `Cluster` does not decode them.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema

from fixtures.clients.raw import encode_request
from reference_broker.core.apis import BROKER_APIS
from reference_broker.core.connection import Connection
from tests.reference_broker.scripted import API_KEYS, CLOSED, ScriptedBroker, any_request, batch, populated, request

pytestmark = pytest.mark.sampled(2)

VERSIONS = [
    (api.key, version) for api in BROKER_APIS.values() for version in range(api.min_version, api.max_version + 1)
]
NAMES = {key: name for name, key in API_KEYS.items()}


@pytest.fixture(scope="module")
def broker() -> ScriptedBroker:
    broker = ScriptedBroker(offsets_topic_num_partitions="1")
    broker.create_topic()
    broker.produce(batch(b"a"))
    return broker


@pytest.mark.parametrize(("api_key", "version"), VERSIONS, ids=str)
def test_an_empty_request_gets_a_response(broker, api_key, version):
    sent = broker.send(NAMES[api_key], version)
    if api_key == 0:
        assert sent == []  # acks is 0
    else:
        [(connection, response)] = sent
        assert connection is broker.connection
        assert (response.__api_key__, response.__version__) == (api_key, version)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_request_gets_a_response(broker, data):
    api_key, version = data.draw(st.sampled_from(VERSIONS))
    entity: Any = data.draw(any_request(api_key, version))
    sent = broker.send_entity(entity)
    assert all(connection is broker.connection for connection, _ in sent)
    if not sent:
        assert api_key in {0, 1}
        broker.advance(2**31)
    assert all(response is not CLOSED or api_key == 0 for _, response in sent)
    assert broker.request("ApiVersions", 0).error_code == 0


@st.composite
def damaged_frames(draw):
    """Draw a request with values in all fields, and a few bytes overwritten, removed or inserted."""
    api_key, version = draw(st.sampled_from(VERSIONS))
    frame = bytearray(encode_request(populated(load_request_schema(api_key, version)), 7, "me"))
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(8, len(frame)))
        instead = draw(
            st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"]) | st.binary(max_size=6)
        )
        frame[position : position + draw(st.integers(0, 6))] = instead
    return bytes(frame)


@settings(max_examples=1_000)
@given(frame=damaged_frames())
def test_a_damaged_request_gets_a_response_or_closes_its_connection(broker, frame):
    connection = Connection()
    sent = broker.send_bytes(frame, connection) or broker.advance(2**31)
    is_produce = frame[:2] == b"\0\0"
    assert [receiver for receiver, _ in sent] == [connection] or (is_produce and sent == [])  # acks may be 0
    broker.disconnect(connection)
    assert broker.request("ApiVersions", 0).error_code == 0


def test_all_listed_apis_are_tested(broker):
    response = broker.request("ApiVersions", 0)
    assert {entry.api_key for entry in response.api_keys} == {api_key for api_key, _ in VERSIONS}
    assert request("Metadata", 12).topics is None
