"""Codecs of requests and responses, one per API and version, with kio's schemas and readers.

Rules of this file:
- Codecs are created lazily: classes are imported when the first request of a version arrives. A broker with one modern
  client loads a dozen of kio's six hundred message modules.
- A handler serves all versions of its API. It uses `getattr(body, field, default)` for fields that some versions lack,
  and builds its response with `Replies`, which omits fields that the version lacks.
- Unknown tagged fields are skipped (KIP-482). The response of ApiVersions always has header version 0 (KIP-511), as
  defined in kio's schema.
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

from reference_broker.protocol.bounds import bounds_checker, walk_tagged_fields
from reference_broker.protocol.encoding import Encode, encoder
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.repeated import REPEATING_APIS, Read, caching_reader, caching_writer

_FIXED_HEADER = struct.Struct(">hhi")
_CLIENT_ID_SIZE = struct.Struct(">h")
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_NO_TAGGED_FIELDS = b"\x00"


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The fields that are the same in all versions of the request header."""

    api_key: int
    api_version: int
    correlation_id: int


def read_header(frame: bytes) -> RequestHeader:
    """Decode the first eight bytes of a request. Raises `MalformedRequestError`."""
    if len(frame) < _FIXED_HEADER.size:
        raise MalformedRequestError(f"a request of {len(frame)} bytes is too short for a header")
    return RequestHeader(*_FIXED_HEADER.unpack_from(frame))


def _read_client_id(frame: bytes, *, flexible: bool) -> tuple[str | None, int]:
    """Return the client id, which is never compact (KIP-511), and the end of the header after its tagged fields."""
    position = _FIXED_HEADER.size + _CLIENT_ID_SIZE.size
    if len(frame) < position:
        raise MalformedRequestError("the request ends inside its header")
    (size_bytes,) = _CLIENT_ID_SIZE.unpack_from(frame, _FIXED_HEADER.size)
    end = position + max(size_bytes, 0)
    if len(frame) < end:
        raise MalformedRequestError(
            f"a client id of {size_bytes} bytes, but only {len(frame) - position} bytes are left"
        )
    client_id = None if size_bytes < 0 else frame[position:end].decode(errors="replace")
    return client_id, walk_tagged_fields(frame, end) if flexible else end


class Replies:
    """Constructors of the response classes of one API version, which drop fields that the version lacks.

    `replies.PartitionProduceResponse(index=0, base_offset=7, log_start_offset=0)` omits `log_start_offset` in version
    3. If the version lacks the class, the result is null. `throttle_time` must not be passed: it is always zero,
    because this broker has no quotas.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        make = _maker(getattr(self._module, name, None))
        setattr(self, name, make)  # the next access does not call this method
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
    """Return the reader of a message type, which raises `MalformedRequestError`."""
    check, read_entity = bounds_checker(message_type), entity_reader(message_type)

    def read(frame: bytes, position: int) -> Any:
        frame, position = check(frame, position)
        try:
            body, _ = read_entity(frame, position)
        except Exception as error:  # kio's native reader raises SerialError, ValueError, OverflowError, …
            raise MalformedRequestError(f"{type(error).__name__}: {error}") from error
        return body

    return caching_reader(read) if api_key in REPEATING_APIS else read


def _body_writer(api_key: int, message_type: Any) -> Encode:
    """Return the writer of a message type."""
    write = encoder(message_type)
    return caching_writer(write) if api_key in REPEATING_APIS else write


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
        """Decode a request to its client id and body (kio's dataclass). Raises `MalformedRequestError`."""
        client_id, position = _read_client_id(frame, flexible=self._flexible_header)
        return client_id, self._read_body(frame, position)

    def write(self, correlation_id: int, response: Any) -> bytes:
        """Encode a response with length prefix and header."""
        body = self._write_body(response)
        size_bytes = _CORRELATION_ID.size + len(self._header_end) + len(body)
        return b"".join((_SIZE_AND_CORRELATION_ID.pack(size_bytes, correlation_id), self._header_end, body))


@cache
def message_codec(api_key: int, version: int) -> MessageCodec:
    """Return the codec of an API version that kio supports."""
    return MessageCodec(api_key, version)


class ClientCodec:
    """Writer of requests to other nodes, and reader of their responses, of one version of one API."""

    def __init__(self, request_type: Any) -> None:
        self._api_key, self._version = int(request_type.__api_key__), int(request_type.__version__)
        self._write_body = _body_writer(self._api_key, request_type)
        self._header_end = _NO_TAGGED_FIELDS if request_type.__header_schema__.__flexible__ else b""
        response_type = load_response_schema(self._api_key, self._version)
        self._body_position = _CORRELATION_ID.size + int(response_type.__header_schema__.__flexible__)
        self._read_body = _body_reader(self._api_key, response_type)

    def write(self, correlation_id: int, client_id: str, request: Any) -> bytes:
        """Encode a request with length prefix and header."""
        encoded_client_id = client_id.encode()
        header = _FIXED_HEADER.pack(self._api_key, self._version, correlation_id)
        client = _CLIENT_ID_SIZE.pack(len(encoded_client_id)) + encoded_client_id + self._header_end
        body = self._write_body(request)
        return b"".join((_SIZE.pack(len(header) + len(client) + len(body)), header, client, body))

    def read(self, frame: bytes) -> tuple[int, Any]:
        """Decode a response to its correlation id and body (kio's dataclass). Raises `MalformedRequestError`."""
        if len(frame) < self._body_position:
            raise MalformedRequestError(f"a response of {len(frame)} bytes is too short for a header")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        return correlation_id, self._read_body(frame, self._body_position)


@cache
def client_codec(request_type: type) -> ClientCodec:
    """Return the codec of a request class."""
    return ClientCodec(request_type)
