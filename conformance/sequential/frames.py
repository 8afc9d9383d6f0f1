"""Requests that kio cannot write: of a version that does not exist, or with unknown tagged fields."""

import struct
from typing import Any, Final

from kio.index import load_response_from_request, load_response_schema

from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.raw import RawClient, decode_response, encode_request

_UNKNOWN_TAGS: Final = b"\x01\xe8\x07\x05trial"
"""A section with one tagged field (KIP-482): the number of fields, the tag 1000, the size, and the bytes."""
_NO_TAGS: Final = b"\x00"
_CLIENT_ID_OFFSET: Final = 8
"""Offset of the client id in a frame, after the API key, the version and the correlation id."""


def request_with_unknown_tags(client: RawClient, message: Any) -> Any:
    """Send a request with an unknown tagged field in header (v2) and body; return the response.

    A version that is not flexible (KIP-482) is sent without tagged fields.
    """
    if not message.__flexible__:
        return client.request(message)
    frame = encode_request(message, 1, client.client_id)
    (length,) = struct.unpack_from(">h", frame, _CLIENT_ID_OFFSET)
    header_end = _CLIENT_ID_OFFSET + 2 + max(length, 0)
    body_start = header_end + len(_NO_TAGS)
    assert frame[header_end:body_start] == frame[-1:] == _NO_TAGS, f"v{message.__version__} has tags, or can have none"
    tagged = frame[:header_end] + _UNKNOWN_TAGS + frame[body_start:-1] + _UNKNOWN_TAGS
    client.send_bytes(struct.pack(">i", len(tagged)) + tagged)
    return decode_response(load_response_from_request(type(message)), client.receive_frame())


def request_unknown_version(client: RawClient, version: int) -> Any:
    """Send ApiVersions in an unknown version, with header v2 and the body of v3 (KIP-511); return the response."""
    schema = request_schema(ApiKey.API_VERSIONS, 3)
    body = schema.ApiVersionsRequest(client_software_name="kafkatrial", client_software_version="1")
    frame = bytearray(encode_request(body, 1, client.client_id))
    frame[2:4] = version.to_bytes(2, "big")
    client.send_bytes(len(frame).to_bytes(4, "big") + bytes(frame))
    return decode_response(load_response_schema(ApiKey.API_VERSIONS, 0), client.receive_frame())
