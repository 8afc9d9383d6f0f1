"""Independent check of messages: kio must read all of each message, and write the same bytes.

    WireCheck(cluster.network)

The broker has its own writers. This module compares their output, and the framing, with the schemas of kio. Requests of
clients are not checked, because a client may send invalid requests.
"""

import io
import struct
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from reference_broker.simulation.network import Network
from reference_broker.simulation.pipe import Pipe

_REQUEST = struct.Struct(">ihhi")
_RESPONSE = struct.Struct(">ii")
_ERROR = struct.Struct(">h")
_LENGTH_BYTES = 4
_API_VERSIONS = 18


class WireError(AssertionError):
    """A message that does not agree with its schema."""


class WireCheck:
    """Check of the messages that are sent over a network after the creation of this object.

    :param every: n if only every nth message is checked.
    :ivar checked: number of checked messages.
    """

    def __init__(self, network: Network, *, every: int = 1) -> None:
        self.checked = 0
        self._every = every
        self._seen = 0
        self._requests: dict[tuple[Pipe, int], tuple[int, int]] = {}
        network.sent.append(self._look)

    def _look(self, pipe: Pipe, data: bytes, from_opener: bool) -> None:
        self._seen += 1
        is_chosen = self._seen % self._every == 0
        if from_opener:
            _, api_key, version, correlation_id = _REQUEST.unpack_from(data)
            self._requests[pipe, correlation_id] = api_key, version
            if is_chosen and pipe.opener.place.isdecimal():
                self._check(load_request_schema(api_key, version), data)
        else:
            _, correlation_id = _RESPONSE.unpack_from(data)
            api_key, version = self._requests.pop((pipe, correlation_id), (None, 0))
            if is_chosen and api_key is not None:  # None: the request was sent before this object was created
                self._check(load_response_schema(api_key, _response_version(api_key, version, data)), data)

    def _check(self, message_type: Any, data: bytes) -> None:
        self.checked += 1
        if int.from_bytes(data[:_LENGTH_BYTES], "big") != len(data) - _LENGTH_BYTES:
            raise WireError(f"{message_type}: the length of the frame is wrong: {data.hex()}")
        header_type = message_type.__header_schema__
        try:
            header, header_bytes = entity_reader(header_type)(data, _LENGTH_BYTES)
            message, message_bytes = entity_reader(message_type)(data, _LENGTH_BYTES + header_bytes)
        except Exception as error:
            raise WireError(f"{message_type} cannot be read: {error}: {data.hex()}") from error
        if _LENGTH_BYTES + header_bytes + message_bytes != len(data):
            raise WireError(f"{message} ends before the frame: {data.hex()}")
        written = io.BytesIO()
        entity_writer(header_type)(written, header)
        entity_writer(message_type)(written, message)
        if written.getvalue() != data[_LENGTH_BYTES:]:
            raise WireError(f"{message} is {written.getvalue().hex()} as written by kio, and was sent as {data.hex()}")


def _response_version(api_key: int, version: int, data: bytes) -> int:
    """Return the version of a response: 0 for ApiVersions with an unsupported version (KIP-511)."""
    if api_key == _API_VERSIONS and _ERROR.unpack_from(data, _RESPONSE.size)[0] == ErrorCode.unsupported_version.value:
        return 0
    return version
