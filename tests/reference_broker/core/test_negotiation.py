"""ApiVersions and malformed requests."""

import struct

import pytest
from kio.schema.errors import ErrorCode

from reference_broker.core.apis import BROKER_APIS
from reference_broker.core.connection import Connection
from tests.reference_broker.scripted import CLOSED, ScriptedBroker


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker()


def test_every_api_is_listed(broker):
    response = broker.request("ApiVersions", 4, client_software_name="test", client_software_version="1.0")
    ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    assert set(ranges) == set(BROKER_APIS)
    assert ranges[0] == (0, 13)
    assert ranges[1] == (4, 18)
    assert [(feature.name, feature.max_version_level) for feature in response.finalized_features] == [
        ("metadata.version", 30)
    ]
    assert response.finalized_features_epoch == broker.broker.metadata_offset


@pytest.mark.parametrize("software", [("", "1"), ("a", ""), ("-a", "1"), ("a", "1-"), ("a b", "1"), ("ä", "1")])
def test_invalid_software_names_are_rejected(broker, software):
    name, version = software
    response = broker.request("ApiVersions", 3, client_software_name=name, client_software_version=version)
    assert (response.error_code, response.api_keys) == (ErrorCode.invalid_request, ())


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unsupported_version_gets_a_response_of_version_0(broker, version):
    frame = struct.pack(">hhi", 18, version, 42) + b"whatever a newer header may hold"
    [(_, data)] = broker.send_bytes(frame)
    assert data == struct.pack(">ihihhh", 42, ErrorCode.unsupported_version, 1, 18, 0, 4)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00\x03",
        struct.pack(">hhih", 9999, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
        struct.pack(">hhih", 3, 14, 1, -1),
        struct.pack(">hhih", 3, -1, 1, -1),
        struct.pack(">hhih", 0, 0, 1, -1),
        struct.pack(">hhih", 18, -1, 1, -1),
        struct.pack(">hhih", 3, 1, 1, -1),
        struct.pack(">hhih", 3, 1, 1, 500) + b"short",
        struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1),
        struct.pack(">hhih", 3, 12, 1, -1) + b"\x00\xff\xff\xff\xff\x0f",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=repr,
)
def test_a_malformed_request_closes_only_its_connection(broker, frame):
    bad, good = Connection(), Connection()
    [(connection, closed)] = broker.send_bytes(frame, bad)
    assert (connection, closed) == (bad, CLOSED)
    assert broker.request("ApiVersions", 0, good).error_code == 0


def test_unknown_tagged_fields_are_ignored(broker):
    tag = b"\x01\x63\x03abc"  # one field: tag 99, three bytes
    header = struct.pack(">hhih", 18, 3, 7, -1) + tag
    [(_, data)] = broker.send_bytes(header + b"\x05test" + b"\x021" + tag)
    assert struct.unpack_from(">ih", data) == (7, 0)


def test_the_client_id_may_be_null(broker):
    [(_, data)] = broker.send_bytes(struct.pack(">hhih", 18, 0, 7, -1))
    assert data != CLOSED
