"""From a frame to effects: the one way in for requests.

Reads the header, finds the API's entry in the table, decodes the body and lets the handler answer. Bytes that are no
request close their connection and touch nothing else. ApiVersions alone is answered in a version that this broker
lacks, since that is how a newer client finds out which it has (KIP-35, KIP-511).
"""

from reference_broker.core.apis import API_VERSIONS, APIS
from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection, Effect
from reference_broker.core.handlers.api_versions import unsupported_version
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import MalformedRequestError, UnsupportedVersionError
from reference_broker.protocol.messages import RequestHeader, message_codec, read_header


def handle(broker: Broker, connection: Connection, frame: bytes, now: Now) -> list[Effect]:
    """Take in one request; tell what is to be sent, to this connection and to others."""
    try:
        header = read_header(frame)
        if header.api_key == API_VERSIONS and header.api_version > APIS[API_VERSIONS].max_version:
            _refuse_version(broker, connection, header)
        else:
            _serve(broker, connection, frame, header, now)
    except MalformedRequestError as error:
        broker.close_connection(connection, str(error))
    return broker.take_effects()


def _serve(broker: Broker, connection: Connection, frame: bytes, header: RequestHeader, now: Now) -> None:
    api = APIS.get(header.api_key)
    if api is None or not api.min_version <= header.api_version <= api.max_version:
        raise UnsupportedVersionError(f"API key {header.api_key} version {header.api_version} is not served")
    codec = message_codec(header.api_key, header.api_version)
    client_id, body = codec.read(frame)
    request = Request(
        connection, header.api_key, header.api_version, header.correlation_id, client_id, body, codec.replies
    )
    match api.handle(broker, request, now):
        case Outcome.DEFERRED:
            connection.busy = True
        case Outcome.NO_RESPONSE:
            pass
        case Outcome.CLOSE_CONNECTION:
            broker.close_connection(connection, "a request without a response failed")
        case response:
            broker.respond(request, response)


def _refuse_version(broker: Broker, connection: Connection, header: RequestHeader) -> None:
    codec = message_codec(API_VERSIONS, 0)
    request = Request(connection, API_VERSIONS, 0, header.correlation_id, None, None, codec.replies)
    broker.respond(request, unsupported_version(codec.replies, APIS[API_VERSIONS].advertised))
