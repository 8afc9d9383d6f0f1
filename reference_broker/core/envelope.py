"""Envelope (58), version 0: a client's request that a broker forwards to the active controller.

Follows: kafka.server.EnvelopeUtils (KIP-590).

An Envelope contains the client's request with its header. The Envelope response contains the client's response with the
correlation id of that header, so the broker relays it unchanged. An Envelope also contains the client's principal:
`User:ANONYMOUS`, because clients are not authenticated.
"""

from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from reference_broker.core.request import Request
from reference_broker.protocol.bounds import without_null
from reference_broker.protocol.encoding import encoder
from reference_broker.protocol.errors import ErrorCode


def wrap(request: Request) -> Any:
    """Return kio's entity of an Envelope request that contains a request."""
    from kio.schema.envelope.v0.request import EnvelopeRequest

    return EnvelopeRequest(
        request_data=request.frame,
        request_principal=_anonymous(),
        client_host_address=request.connection.peer_address,
    )


@cache
def _anonymous() -> bytes:
    """Return `User:ANONYMOUS` as version and message, in the form of `DefaultKafkaPrincipalBuilder.serialize`."""
    from kio.schema.default_principal_data.v0.data import DefaultPrincipalData

    message: Any = DefaultPrincipalData
    principal = message(type_="User", name="ANONYMOUS", token_authenticated=False)
    return (0).to_bytes(2, "big") + encoder(DefaultPrincipalData)(principal)


def in_envelope(envelope: Request, response: Any, data: bytes) -> Any:
    """Return the Envelope response that contains a response.

    If an error code in the response is NOT_CONTROLLER, it becomes the envelope's error, and the broker retries.

    :param data: the encoded response, with its length prefix.
    """
    if ErrorCode.not_controller in _error_codes(response):
        return envelope.replies.EnvelopeResponse(error_code=ErrorCode.not_controller, response_data=None)
    return envelope.replies.EnvelopeResponse(error_code=ErrorCode.none, response_data=data[4:])


def _error_codes(entity: Any) -> Iterator[ErrorCode]:
    entity_type: Any = type(entity)
    codes, arrays = _fields_with_errors(entity_type)
    for name in codes:
        yield getattr(entity, name)
    for name in arrays:
        for element in getattr(entity, name):
            yield from _error_codes(element)


@cache
def _fields_with_errors(entity_type: Any) -> tuple[list[str], list[str]]:
    """Return the names of an entity's fields that are error codes, and of the arrays whose elements contain some."""
    codes, arrays = [], []
    for name, hint in get_type_hints(entity_type).items():
        inner = without_null(hint)
        if inner is ErrorCode:
            codes.append(name)
        elif get_origin(inner) is tuple:
            element = get_args(inner)[0]
            arrays += [name] if is_dataclass(element) and any(_fields_with_errors(cast("Any", element))) else []
    return codes, arrays
