"""Invalid bytes over real connections: the connection is closed, other connections are served."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.clients.raw import RawClient
from reference_broker.core.apis import BROKER_APIS
from tests.reference_broker.scripted import request
from tests.reference_broker.server.process import running


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with running(tmp_path_factory.mktemp("hostile") / "data") as broker:
        yield broker


@pytest.fixture(scope="module")
def bystander(broker):
    with RawClient(broker.host, broker.port) as client:
        yield client


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 100 * 1024 * 1024 + 1),
        struct.pack(">i", 0),
        struct.pack(">ihhih", 10, 9999, 0, 1, -1),
        struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
    ],
    ids=repr,
)
def test_connection_is_closed_after_invalid_bytes(broker, bystander, sent):
    with RawClient(broker.host, broker.port) as client:
        client.send_bytes(sent)
        assert client.wait_closed(5)
    assert bystander.request(request("ApiVersions", 0)).error_code == 0


def test_incomplete_request_does_not_affect_other_connections(broker, bystander):
    with RawClient(broker.host, broker.port) as client:
        client.send_bytes(struct.pack(">ihh", 1_000, 3, 1))
        assert bystander.request(request("ApiVersions", 0)).error_code == 0
        assert not client.wait_closed(0.2)


headers = st.builds(
    lambda key, version, rest: struct.pack(">hhi", key, version, 1) + rest,
    st.sampled_from(sorted(BROKER_APIS)),
    st.integers(0, 19),
    st.binary(max_size=80),
)


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(headers | st.binary(max_size=40), min_size=1, max_size=4))
def test_any_frames(broker, bystander, frames):
    with RawClient(broker.host, broker.port) as client:
        client.send_bytes(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
        assert bystander.request(request("ApiVersions", 0)).error_code == 0
    assert broker.process.poll() is None


def test_pipelined_responses_are_in_the_order_of_requests(broker):
    topic = {"name": "pipeline", "num_partitions": 1, "replication_factor": 1}
    waiting = [{"topic": "pipeline", "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}]
    with RawClient(broker.host, broker.port) as client:
        client.request(request("CreateTopics", 7, topics=[topic]))
        sent = [
            client.send(request("Fetch", 12, max_wait=200, min_bytes=1, topics=waiting)),
            client.send(request("ApiVersions", 0)),
            client.send(request("Metadata", 12)),
        ]
        assert [client.receive_next()[0] for _ in sent] == sent
