"""Dispatch of requests: from a frame to the handler of its API.

Follows: kafka.server.KafkaApis, kafka.server.ControllerApis (KIP-35, KIP-511).

`handle` reads the header, finds the API's entry in the table of the listener, decodes the body and calls the handler.
A malformed request closes its connection and has no other effect. Only ApiVersions has a response to an unsupported
version, so that a newer client learns the supported versions.
"""

from collections.abc import Generator

from reference_broker.core.api import Part, ServingNode
from reference_broker.core.apis import BROKER_APIS, CONTROLLER_APIS
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.api_versions import API_VERSIONS, unsupported_version
from reference_broker.core.request import Request
from reference_broker.core.tracer import RequestReceived
from reference_broker.protocol.errors import MalformedRequestError, UnsupportedVersionError
from reference_broker.protocol.messages import RequestHeader, message_codec, read_header

_PRODUCE = 0
REQUEST_MAX_BYTES = 8 * 1024 * 1024
"""Limit of requests other than Produce. Clients do not need larger ones. They would delay all other requests, because a
node has one thread, unlike Kafka."""


def handle(node: ServingNode, connection: Connection, frame: bytes, now: Now) -> None:
    """Handle the frame of a request, without its length. The response is one of the node's effects."""
    try:
        header = read_header(frame)
        apis = CONTROLLER_APIS if connection.is_controller else BROKER_APIS
        if header.api_key == API_VERSIONS and header.api_version > apis[API_VERSIONS].max_version:
            _reject_version(node, connection, header)
        else:
            serve(node, connection, frame, header, now)
    except MalformedRequestError as error:
        node.runtime.close_connection(connection, str(error))


def serve(
    node: ServingNode,
    connection: Connection,
    frame: bytes,
    header: RequestHeader,
    now: Now,
    *,
    envelope: Request | None = None,
) -> None:
    """Call the handler of a request, whose response may be deferred. Raises `MalformedRequestError`.

    :param envelope: the Envelope request that contains this one; null if this one was sent to this node directly.
    """
    api = (CONTROLLER_APIS if connection.is_controller else BROKER_APIS).get(header.api_key)
    if api is None or not api.min_version <= header.api_version <= api.max_version:
        raise UnsupportedVersionError(f"API key {header.api_key} version {header.api_version} is not served")
    if header.api_key != _PRODUCE and len(frame) > REQUEST_MAX_BYTES:
        raise MalformedRequestError(
            f"{len(frame)} bytes; the limit of requests other than Produce is {REQUEST_MAX_BYTES}"
        )
    codec = message_codec(header.api_key, header.api_version)
    client_id, body = codec.read(frame)
    request = Request(
        connection,
        header.api_key,
        header.api_version,
        header.correlation_id,
        client_id,
        body,
        codec.replies,
        frame,
        envelope,
    )
    part = node if api.part is Part.NODE else node.broker if api.part is Part.BROKER else node.controller
    connection.busy = True
    node.runtime.trace(RequestReceived(request))
    outcome = api.handle(part, request, now)
    if isinstance(outcome, Generator):
        node.runtime.work.run(request, outcome, lambda result, _: node.runtime.complete(request, result), now)
    else:
        node.runtime.complete(request, outcome)


def _reject_version(node: ServingNode, connection: Connection, header: RequestHeader) -> None:
    codec = message_codec(API_VERSIONS, 0)
    request = Request(connection, API_VERSIONS, 0, header.correlation_id, None, None, codec.replies)
    own_range = (CONTROLLER_APIS if connection.is_controller else BROKER_APIS)[API_VERSIONS].advertised
    node.runtime.respond(request, unsupported_version(codec.replies, own_range))
