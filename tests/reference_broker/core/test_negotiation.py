"""ApiVersions, and requests with a malformed header or body."""

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
    frame = struct.pack(">hhi", 18, version, 42) + b"the rest of the header, in an unknown form"
    [(_, data)] = broker.send_bytes(frame)
    assert data == struct.pack(">ihihhh", 42, ErrorCode.unsupported_version, 1, 18, 0, 4)


def header(api_key, version, client_id_size=-1):
    return struct.pack(">hhih", api_key, version, 1, client_id_size)


MALFORMED = {
    "no bytes": b"",
    "an API key and nothing else": b"\x00\x03",
    "unknown API key": header(9999, 0),
    "negative API key": header(-1, 0),
    "Metadata of a newer version": header(3, 14),
    "Metadata of a negative version": header(3, -1),
    "Produce of a removed version": header(0, 0),
    "ApiVersions of a negative version": header(18, -1),
    "Metadata without a body": header(3, 1),
    "client id that is cut short": header(3, 1, client_id_size=500) + b"short",
    "array that is longer than the frame": header(3, 1) + struct.pack(">i", 2**31 - 1),
    "compact array that is longer than the frame": header(3, 12) + b"\x00\xff\xff\xff\xff\x0f",
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("frame", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_request_closes_only_its_connection(broker, frame):
    bad, good = Connection(), Connection()
    [(connection, data)] = broker.send_bytes(frame, bad)
    assert (connection, data) == (bad, CLOSED)
    assert broker.request("ApiVersions", 0, good).error_code == 0


def test_unknown_tagged_fields_are_ignored(broker):
    tagged = b"\x01\x63\x03abc"  # one field: tag 99, three bytes
    [(_, data)] = broker.send_bytes(header(18, 3) + tagged + b"\x05test" + b"\x021" + tagged)
    assert struct.unpack_from(">ih", data) == (1, 0)


def test_the_client_id_may_be_null(broker):
    [(_, data)] = broker.send_bytes(header(18, 0, client_id_size=-1))
    assert data != CLOSED
