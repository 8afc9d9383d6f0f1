"""Tampering proxy: a proxy of a correct broker that decodes requests and alters requests or responses.

A `Tampering` is a function of a request and of `forward`, which sends a request to the broker and returns its response.
A tampering may alter the request or the response. It may also call `forward` twice, or not at all. Each broker of the
target has its own proxy. Clients connect only to the proxies, because each response contains the addresses of the
proxies instead of those of the brokers.
"""

import datetime as dt
import io
import select
import socket
import struct
import threading
import typing
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from kio.index import load_payload_module, load_response_from_request
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from fixtures.clients.client_settings import PLAINTEXT
from fixtures.clients.drivers import ConfluentDrivers
from fixtures.clients.messages import known_versions
from fixtures.clients.raw import RawClient, RawClientError
from fixtures.targets.target import Node
from reference_broker.protocol.bounds import length_checker

Forward = Callable[[Any], Any]
Tampering = Callable[[Any, Forward], Any]
"""Function (request, forward) -> response; None if the client gets no response."""

REQUEST_BYTES_MAX = 100 * 1024 * 1024
_WITH_ADDRESSES = frozenset({3, 10, 60})
"""API keys of Metadata, FindCoordinator and DescribeCluster, whose responses have the addresses of brokers."""


@dataclass(frozen=True, slots=True)
class FrameDefects:
    """Defects of a proxy that concern whole frames or connections, in addition to its tampering."""

    keeps_garbage_open: bool = False
    """Keep the client's connection open after malformed bytes, although the broker closes its own."""
    reverses: bool = False
    """Respond to pipelined requests in reverse order."""
    rejects_unreadable: bool = False
    """Close the connection after any request that cannot be decoded. A correct broker responds to some of these."""
    closes_all: bool = False
    """Close every connection of the proxy after a request that cannot be decoded."""


NO_FRAME_DEFECTS = FrameDefects()


class TamperingProxy:
    """Target whose clients connect to tampering proxies of another target's brokers; a context manager."""

    def __init__(self, target: Any, tamper: Tampering, frame_defects: FrameDefects = NO_FRAME_DEFECTS) -> None:
        self._target = target
        self._tamper = tamper
        self._frame_defects = frame_defects
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in target.nodes]
        self._connections: list[socket.socket] = []
        self.name = f"tampered {target.name}"
        self.kind, self.version, self.versions = target.kind, target.version, target.versions
        self.transport, self.stage = target.transport, target.stage
        self.capabilities, self.cluster_properties = target.capabilities, target.cluster_properties
        self.processes = getattr(target, "processes", None)
        self.node_count = len(target.nodes)
        ports = [listener.getsockname()[1] for listener in self._listeners]
        self.nodes = tuple(Node(node.id, "127.0.0.1", port) for node, port in zip(target.nodes, ports, strict=True))
        self.bootstrap_servers = f"127.0.0.1:{self.nodes[0].port}"
        self.drivers = ConfluentDrivers(self.bootstrap_servers, PLAINTEXT)
        self._proxies = {(node.host, node.port): mine for node, mine in zip(target.nodes, self.nodes, strict=True)}

    def __enter__(self) -> "TamperingProxy":
        for listener, node in zip(self._listeners, self._target.nodes, strict=True):
            threading.Thread(target=self._accept, args=(listener, node), daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._close_connections()

    def _close_connections(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket, node: Node) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection, node), daemon=True).start()

    def _serve(self, connection: socket.socket, node: Node) -> None:
        errors_ignored = suppress(OSError, RawClientError)
        with connection, errors_ignored, RawClient(node.host, node.port, timeout_s=10) as upstream:
            with errors_ignored:
                while True:
                    frames = self._read_frames(connection)
                    responses = [self._respond(frame, upstream) for frame in frames]
                    for response in reversed(responses) if self._frame_defects.reverses else responses:
                        if response:
                            connection.sendall(struct.pack(">i", len(response)) + response)
            if self._frame_defects.keeps_garbage_open:
                with suppress(OSError):
                    while connection.recv(1 << 16):
                        pass

    def _read_frames(self, connection: socket.socket) -> list[bytes]:
        frames = [_read_frame(connection)]
        while self._frame_defects.reverses and select.select([connection], [], [], 0.05)[0]:
            frames.append(_read_frame(connection))
        return frames

    def _respond(self, frame: bytes, upstream: RawClient) -> bytes:
        key, version = struct.unpack_from(">hh", frame)
        try:
            correlation_id, request = _decode_request(key, version, frame)
        except Exception:  # noqa: BLE001 - a request that cannot be decoded is forwarded unchanged
            if self._frame_defects.closes_all:
                self._close_connections()
            if self._frame_defects.rejects_unreadable or self._frame_defects.closes_all:
                raise ConnectionError("the request cannot be decoded") from None
            upstream.send_bytes(struct.pack(">i", len(frame)) + frame)
            return self._with_own_addresses(key, version, upstream.receive_frame())
        response = self._tamper(request, lambda altered: self._forward(altered, upstream))
        return b"" if response is None else _encode_response(correlation_id, response)

    def _with_own_addresses(self, key: int, version: int, frame: bytes) -> bytes:
        """Replace the brokers' addresses in the response to a request that could not be decoded.

        For example, librdkafka sends Metadata requests with bytes left over. If the response had the brokers'
        addresses, the client or the mesh in front of the proxy would bypass the proxy. A response that cannot be
        decoded either is returned unchanged.
        """
        if key not in _WITH_ADDRESSES:
            return frame
        try:
            correlation_id, response = decoded(key, version, frame)
        except Exception:  # noqa: BLE001 - kio raises exceptions of many classes
            return frame
        return _encode_response(correlation_id, self._behind(response))

    def _forward(self, request: Any, upstream: RawClient) -> Any:
        if getattr(request, "acks", None) == 0:
            upstream.send(request)
            return None
        return self._behind(upstream.request(request))

    def _behind(self, value: Any) -> Any:
        """Replace the address of each broker in a response, or in a part of it, by that of the broker's proxy."""
        if isinstance(value, tuple):
            return tuple(map(self._behind, value))
        if isinstance(value, str) and "://" in value:  # advertised.listeners
            for (host, port), proxy in self._proxies.items():
                value = value.replace(f"{host}:{port}", f"{proxy.host}:{proxy.port}")
        if not is_dataclass(value):
            return value
        changes = {item.name: self._behind(getattr(value, item.name)) for item in fields(value)}
        if proxy := self._proxies.get((changes.get("host"), changes.get("port"))):
            changes |= {"host": proxy.host, "port": proxy.port}
        return replace(value, **changes)


def _read_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _read(connection, 4))
    if not 4 <= size <= REQUEST_BYTES_MAX:
        raise ConnectionError(f"the frame has an invalid size of {size} bytes")
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the client closed the connection")
        data += more
    return data


def _decode_request(key: int, version: int, frame: bytes) -> tuple[int, Any]:
    return decoded(key, version, frame, EntityType.request)


def decoded(key: int, version: int, frame: bytes, entity_type: EntityType = EntityType.response) -> tuple[int, Any]:
    """Decode a whole frame. Return its correlation id and its message."""
    module = load_payload_module(key, version, entity_type)
    message_type = next(
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and getattr(kind, "__type__", None) is entity_type
    )
    header, position = entity_reader(message_type.__header_schema__)(frame, 0)
    length_checker(message_type)(frame, position)  # otherwise kio may end this process
    message, read = entity_reader(message_type)(frame, position)
    if position + read != len(frame):
        raise ValueError("bytes left over")
    return header.correlation_id, message


def _encode_response(correlation_id: int, response: Any) -> bytes:
    buffer = io.BytesIO()
    header_type = response.__header_schema__
    entity_writer(header_type)(buffer, header_type(correlation_id=correlation_id))
    entity_writer(type(response))(buffer, response)
    return buffer.getvalue()


# --- building blocks of tamperings


def api(request: Any) -> str:
    """Return the name of the API, such as `Produce` for a ProduceRequest of any version."""
    return type(request).__name__.removesuffix("Request")


def altered(entity: Any, path: str, change: Callable[[Any], Any]) -> Any:
    """Return a copy with the value at a path of field names changed, in each element of a sequence on the path."""
    if isinstance(entity, tuple):
        return tuple(altered(item, path, change) for item in entity)
    if not path:
        return change(entity)
    name, _, rest = path.partition(".")
    return replace(entity, **{name: altered(getattr(entity, name), rest, change)})


def with_errors(entity: Any, error: ErrorCode) -> Any:
    """Return a copy of an entity with this error in place of every error code, also in nested entities."""
    if isinstance(entity, tuple):
        return tuple(with_errors(item, error) for item in entity)
    if not is_dataclass(entity):
        return entity
    changes = {item.name: with_errors(getattr(entity, item.name), error) for item in fields(entity)}
    codes = {name: error for name, value in changes.items() if isinstance(value, ErrorCode)}
    return replace(entity, **changes | codes)


def blank(kind: Any) -> Any:
    """Return an entity of a kio class whose nullable fields are null and whose other values are empty or 0.

    Each array of entities has one such entity.
    """
    hints = typing.get_type_hints(kind)
    return kind(**{item.name: _blank_value(hints[item.name]) for item in fields(kind)})


def _blank_value(kind: Any) -> Any:
    parts = typing.get_args(kind)
    if any(part is type(None) for part in parts):
        return None
    if parts:
        return (blank(parts[0]),) if is_dataclass(parts[0]) else ()
    if is_dataclass(kind):
        return blank(kind)
    if issubclass(kind, ErrorCode):
        return ErrorCode.none
    if issubclass(kind, uuid.UUID):
        return uuid.UUID(int=0)
    if issubclass(kind, dt.datetime):
        return dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    empty = next(base for base in (bool, int, float, str, bytes, dt.timedelta) if issubclass(kind, base))
    return empty()


def pretended(error: ErrorCode, *keys: int) -> Tampering:
    """Return a tampering that pretends that the broker offers the APIs with these keys.

    It adds them to ApiVersions, with `group.version` as a finalized feature, and responds to each of their requests
    with the error. FindCoordinator always finds the coordinator of a group.
    """

    def tamper(request: Any, forward: Forward) -> Any:
        if request.__api_key__ in keys:
            return with_errors(blank(load_response_from_request(type(request))), error)
        if api(request) == "FindCoordinator":
            return forward(replace(request, key_type=0))
        response = forward(request)
        if api(request) != "ApiVersions":
            return response
        first, newest = response.api_keys[0], {key: known_versions(key)[-1] for key in keys}
        added = [replace(first, api_key=key, min_version=0, max_version=version) for key, version in newest.items()]
        response = replace(response, api_keys=(*response.api_keys, *added))
        if not hasattr(response, "finalized_features"):
            return response
        (kind, _) = typing.get_args(typing.get_type_hints(type(response))["finalized_features"])
        enabled = replace(blank(kind), name="group.version", max_version_level=1, min_version_level=1)
        return replace(response, finalized_features=(*response.finalized_features, enabled))

    return tamper


PARTITIONS = {
    "Produce": "responses.partition_responses",
    "Fetch": "responses.partitions",
    "ListOffsets": "topics.partitions",
    "OffsetForLeaderEpoch": "topics.partitions",
    "DeleteRecords": "topics.partitions",
    "OffsetCommit": "topics.partitions",
    "CreateTopics": "topics",
    "DeleteTopics": "responses",
    "Metadata": "topics",
    "InitProducerId": "",
    "CreatePartitions": "results",
    "AlterPartitionReassignments": "responses.partitions",
    "ListPartitionReassignments": "topics.partitions",
    "DescribeQuorum": "topics.partitions",
    "IncrementalAlterConfigs": "responses",
    "AlterConfigs": "responses",
    "DescribeConfigs": "results",
    "DescribeLogDirs": "",
}
"""For each API: the path in its response to the entities with an error code; "" is the response itself."""


def altered_responses(name: str, change: Callable[[Any, Any], Any]) -> Tampering:
    """Return a tampering that applies `change(request, part)` to the parts of the responses: see PARTITIONS."""

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        if api(request) != name or response is None:
            return response
        return altered(response, PARTITIONS[name], lambda part: change(request, part))

    return tamper


def altered_requests(name: str, change: Callable[[Any], Any]) -> Tampering:
    """Return a tampering that alters requests before they are forwarded to the broker."""
    return lambda request, forward: forward(change(request) if api(request) == name else request)


def suppressed_errors(name: str, **also: Any) -> Tampering:
    """Return a tampering that replaces each error by NONE, and sets the given fields in the parts that had an error."""

    def change(_request: Any, part: Any) -> Any:
        if part.error_code == ErrorCode.none:
            return part
        return replace(part, error_code=ErrorCode.none, **{k: v for k, v in also.items() if hasattr(part, k)})

    return altered_responses(name, change)
