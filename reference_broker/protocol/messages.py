"""Requests in, responses out, for one version of one API at a time. The schemas and readers are kio's.

Rules of this file:
- Lazy: a version's classes are imported, and its reader and writer built, when the first request of it arrives; a
  broker that serves one modern client loads a dozen modules of kio's eight hundred.
- A handler is written once for all versions of its API. It reads with `getattr(request, field, default)` where a field
  is not in every version, and answers through `Replies`, which leaves out what the version at hand does not have.
- Unknown tagged fields are passed over (KIP-482). The answer to ApiVersions has a version 0 header always (KIP-511),
  which is in kio's schema of it.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from types import ModuleType
from typing import Any

from kio.index import load_payload_module, load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio.static.constants import EntityType

from reference_broker.protocol.bounds import readable, walk_tagged_fields
from reference_broker.protocol.encoding import Encode, encoder
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.repeated import REPEATING_APIS, Read, remembering, remembering_writer

_FIXED_HEADER = struct.Struct(">hhi")
_CLIENT_ID_SIZE = struct.Struct(">h")
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_NO_TAGGED_FIELDS = b"\x00"


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What every request begins with, in every header version."""

    api_key: int
    api_version: int
    correlation_id: int


def read_header(frame: bytes) -> RequestHeader:
    """The first eight bytes. Raises `MalformedRequestError`."""
    if len(frame) < _FIXED_HEADER.size:
        raise MalformedRequestError(f"a request of {len(frame)} bytes is too short for a header")
    return RequestHeader(*_FIXED_HEADER.unpack_from(frame))


def _read_client_id(frame: bytes, *, flexible: bool) -> tuple[str | None, int]:
    """The rest of the header: the client id, in its old form even where the header is flexible (KIP-511), and tags."""
    position = _FIXED_HEADER.size + _CLIENT_ID_SIZE.size
    if len(frame) < position:
        raise MalformedRequestError("the request ends inside its header")
    (size_bytes,) = _CLIENT_ID_SIZE.unpack_from(frame, _FIXED_HEADER.size)
    end = position + max(size_bytes, 0)
    if len(frame) < end:
        raise MalformedRequestError(f"a client id of {size_bytes} bytes with {len(frame) - position} bytes left")
    client_id = None if size_bytes < 0 else frame[position:end].decode(errors="replace")
    return client_id, walk_tagged_fields(frame, end) if flexible else end


class Replies:
    """The response classes of one API version, as functions that drop the fields which this version lacks.

    `replies.PartitionProduceResponse(index=0, base_offset=7, log_start_offset=0)` leaves out `log_start_offset` in
    version 3. A class that the version lacks gives null. `throttle_time` is zero where nothing else is said: this
    broker has no quotas.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        make = _maker(getattr(self._module, name, None))
        setattr(self, name, make)  # the next time this method is not asked
        return make


def _maker(entity_type: Any) -> Callable[..., Any]:
    if entity_type is None:
        return lambda **_: None
    names = frozenset(field.name for field in fields(entity_type))
    implied = {"throttle_time": timedelta(0)} if "throttle_time" in names else {}

    def make(**values: Any) -> Any:
        if not names.issuperset(values):
            values = {name: value for name, value in values.items() if name in names}
        return entity_type(**implied, **values)

    return make


def _body_reader(api_key: int, message_type: Any) -> Read:
    """Reads a message of this type. Raises `MalformedRequestError`."""
    judge, read_entity = readable(message_type), entity_reader(message_type)

    def read(frame: bytes, position: int) -> Any:
        frame, position = judge(frame, position)
        try:
            body, _ = read_entity(frame, position)
        except Exception as error:  # kio's native reader raises SerialError, ValueError, OverflowError, …
            raise MalformedRequestError(f"{type(error).__name__}: {error}") from error
        return body

    return remembering(read) if api_key in REPEATING_APIS else read


def _body_writer(api_key: int, message_type: Any) -> Encode:
    """Writes a message of this type."""
    write = encoder(message_type)
    return remembering_writer(write) if api_key in REPEATING_APIS else write


class MessageCodec:
    """Reader of the requests and writer of the responses of one version of one API."""

    def __init__(self, api_key: int, version: int) -> None:
        request_type = load_request_schema(api_key, version)
        response_type = load_response_schema(api_key, version)
        self._flexible_header: bool = request_type.__header_schema__.__flexible__
        self._read_body = _body_reader(api_key, request_type)
        self._write_body = encoder(response_type)
        self._header_end = _NO_TAGGED_FIELDS if response_type.__header_schema__.__flexible__ else b""
        self.replies = Replies(load_payload_module(api_key, version, EntityType.response))

    def read(self, frame: bytes) -> tuple[str | None, Any]:
        """Client id and body (kio's dataclass) of a request. Raises `MalformedRequestError`."""
        client_id, position = _read_client_id(frame, flexible=self._flexible_header)
        return client_id, self._read_body(frame, position)

    def write(self, correlation_id: int, response: Any) -> bytes:
        """A response as it goes on the wire, its length first."""
        body = self._write_body(response)
        size_bytes = _CORRELATION_ID.size + len(self._header_end) + len(body)
        return b"".join((_SIZE_AND_CORRELATION_ID.pack(size_bytes, correlation_id), self._header_end, body))


@cache
def message_codec(api_key: int, version: int) -> MessageCodec:
    """The codec of an API version that kio has; made on first use."""
    return MessageCodec(api_key, version)


class ClientCodec:
    """Writer of the requests and reader of the responses of one version of one API: what a node asks other nodes."""

    def __init__(self, request_type: Any) -> None:
        self._api_key, self._version = int(request_type.__api_key__), int(request_type.__version__)
        self._write_body = _body_writer(self._api_key, request_type)
        self._header_end = _NO_TAGGED_FIELDS if request_type.__header_schema__.__flexible__ else b""
        response_type = load_response_schema(self._api_key, self._version)
        self._body_position = _CORRELATION_ID.size + int(response_type.__header_schema__.__flexible__)
        self._read_body = _body_reader(self._api_key, response_type)

    def write(self, correlation_id: int, client_id: str, request: Any) -> bytes:
        """A request as it goes on the wire, its length first."""
        encoded_client_id = client_id.encode()
        header = _FIXED_HEADER.pack(self._api_key, self._version, correlation_id)
        client = _CLIENT_ID_SIZE.pack(len(encoded_client_id)) + encoded_client_id + self._header_end
        body = self._write_body(request)
        return b"".join((_SIZE.pack(len(header) + len(client) + len(body)), header, client, body))

    def read(self, frame: bytes) -> tuple[int, Any]:
        """Correlation id and body (kio's dataclass) of a response. Raises `MalformedRequestError`."""
        if len(frame) < self._body_position:
            raise MalformedRequestError(f"a response of {len(frame)} bytes is too short for a header")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        return correlation_id, self._read_body(frame, self._body_position)


@cache
def client_codec(request_type: type) -> ClientCodec:
    """The codec of a request's class; made on first use."""
    return ClientCodec(request_type)
