"""Decoding of requests: valid requests round-trip, damaged requests are rejected without a crash."""

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.clients.raw import encode_request
from reference_broker.core.apis import BROKER_APIS
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.messages import RequestHeader, message_codec, read_header
from tests.reference_broker.scripted import API_KEYS, any_request, request

VERSIONS = [
    (api.key, version) for api in BROKER_APIS.values() for version in range(api.min_version, api.max_version + 1)
]
NAMES = {key: name for name, key in API_KEYS.items()}
many = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@many
@given(data=st.data())
def test_requests_round_trip(data):
    api_key, version = data.draw(st.sampled_from(VERSIONS))
    entity: Any = data.draw(any_request(api_key, version))
    client_id = data.draw(st.none() | st.text(max_size=10))
    frame = encode_request(entity, 7, client_id)
    assert read_header(frame) == RequestHeader(api_key, version, 7)
    assert message_codec(api_key, version).read(frame) == (client_id, entity)


@many
@given(data=st.data())
def test_damaged_requests_are_rejected_or_decoded(data):
    api_key, version = data.draw(st.sampled_from(VERSIONS))
    frame = bytearray(encode_request(data.draw(any_request(api_key, version)), 7, "me"))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(8, len(frame) - 1)) if len(frame) > 8 else 0
        frame[position : position + 4] = data.draw(st.binary(max_size=8) | st.just(b"\xff\xff\xff\x7f"))
    damaged = bytes(frame[: data.draw(st.integers(8, max(len(frame), 8)))])
    with contextlib.suppress(MalformedRequestError):
        message_codec(api_key, version).read(damaged)


@pytest.mark.parametrize("length", [2**31 - 1, 2**20])
def test_array_longer_than_its_request_is_rejected(length):
    frame = struct.pack(">hhihi", 3, 1, 1, -1, length)
    with pytest.raises(MalformedRequestError, match=str(length)):
        message_codec(3, 1).read(frame)


def test_truncated_header_is_rejected():
    with pytest.raises(MalformedRequestError):
        read_header(b"\x00\x00\x00")


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhihhhii", 0, 3, 1, -1, -1, 1, 1_000, -1),
        struct.pack(">hhih", 0, 9, 1, -1) + b"\x00" + b"\x00" + struct.pack(">hi", 1, 1_000) + b"\x00\x00",
        struct.pack(">hhihi", 3, 0, 1, -1, -1),
    ],
    ids=["Produce 3", "Produce 9", "Metadata 0"],
)
def test_null_in_a_non_nullable_field_is_rejected(frame):
    api_key, version = struct.unpack_from(">hh", frame)
    with pytest.raises(MalformedRequestError, match="null"):
        message_codec(api_key, version).read(frame)


UNKNOWN_TAGS = st.lists(st.binary(max_size=200), max_size=3)


def tagged(contents: list[bytes], first_tag: int = 100) -> bytes:
    """Return the bytes of unknown tagged fields, without their count."""
    return b"".join(
        varint(first_tag + number) + varint(len(content)) + content for number, content in enumerate(contents)
    )


def varint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value >= 0x80 else bytes([value])


@given(in_header=UNKNOWN_TAGS, in_partition=UNKNOWN_TAGS, in_state=UNKNOWN_TAGS, at_end=UNKNOWN_TAGS)
def test_unknown_tagged_fields_are_skipped_at_every_level(in_header, in_partition, in_state, at_end):
    """The request is a Fetch 15 with unknown tags in nested structs and in a struct that is itself a tagged field."""
    replica_state = struct.pack(">iq", 9, 8) + varint(len(in_state)) + tagged(in_state)
    known = varint(1) + varint(len(replica_state)) + replica_state
    partition = struct.pack(">iiqiqi", 5, 4, 3, 2, 1, 6) + varint(len(in_partition)) + tagged(in_partition)
    topic = bytes(15) + b"\x07" + b"\x02" + partition + b"\x00"
    body = struct.pack(">iiibii", 10, 11, 12, 1, 13, 14) + b"\x02" + topic + b"\x01" + b"\x01"
    header = struct.pack(">hhih", 1, 15, 7, -1) + varint(len(in_header)) + tagged(in_header)
    frame = header + body + varint(1 + len(at_end)) + known + tagged(at_end)
    _, fetch = message_codec(1, 15).read(frame)
    assert (fetch.replica_state.replica_id, fetch.replica_state.replica_epoch) == (9, 8)
    assert (fetch.session_id, fetch.rack_id) == (13, "")
    [[decoded]] = [topic.partitions for topic in fetch.topics]
    assert (decoded.partition, decoded.fetch_offset, decoded.partition_max_bytes) == (5, 3, 6)


def test_replies_omit_fields_that_a_version_lacks():
    old, new = message_codec(0, 3).replies, message_codec(0, 10).replies
    values = {"index": 1, "error_code": 0, "base_offset": 2, "log_start_offset": 3, "record_errors": ()}
    assert not hasattr(old.PartitionProduceResponse(**values), "log_start_offset")
    assert new.PartitionProduceResponse(**values).log_start_offset == 3
    assert old.NodeEndpoint(node_id=1) is None
    assert request("Produce", 3).acks == 0
