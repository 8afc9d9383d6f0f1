"""From a frame to effects: the one way in for requests.

Reads the header, finds the API's entry in the table of the listener, decodes the body and lets the handler answer.
Bytes that are no request close their connection and touch nothing else. ApiVersions alone is answered in a version that
this node lacks, since that is how a newer client finds out which it has (KIP-35, KIP-511).
"""

from reference_broker.core.api import Part, ServingNode
from reference_broker.core.apis import BROKER_APIS, CONTROLLER_APIS
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.handlers.api_versions import API_VERSIONS, unsupported_version
from reference_broker.core.request import Request
from reference_broker.protocol.errors import MalformedRequestError, UnsupportedVersionError
from reference_broker.protocol.messages import RequestHeader, message_codec, read_header


def handle(node: ServingNode, connection: Connection, frame: bytes, now: Now) -> None:
    """Take in one request. What is to be sent, to this connection and to others, is among the node's effects."""
    try:
        header = read_header(frame)
        apis = CONTROLLER_APIS if connection.is_controller else BROKER_APIS
        if header.api_key == API_VERSIONS and header.api_version > apis[API_VERSIONS].max_version:
            _refuse_version(node, connection, header)
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
    """Answer a request, or see to it that it is answered later. Raises `MalformedRequestError`.

    :param envelope: in which it came.
    """
    api = (CONTROLLER_APIS if connection.is_controller else BROKER_APIS).get(header.api_key)
    if api is None or not api.min_version <= header.api_version <= api.max_version:
        raise UnsupportedVersionError(f"API key {header.api_key} version {header.api_version} is not served")
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
    node.runtime.complete(request, api.handle(part, request, now))


def _refuse_version(node: ServingNode, connection: Connection, header: RequestHeader) -> None:
    codec = message_codec(API_VERSIONS, 0)
    request = Request(connection, API_VERSIONS, 0, header.correlation_id, None, None, codec.replies)
    own_range = (CONTROLLER_APIS if connection.is_controller else BROKER_APIS)[API_VERSIONS].advertised
    node.runtime.respond(request, unsupported_version(codec.replies, own_range))
