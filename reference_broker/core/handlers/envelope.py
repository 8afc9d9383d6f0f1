"""Envelope (58), version 0: a client's request that a broker forwards to the controller.

Follows: kafka.server.EnvelopeUtils (KIP-590).

- If this node is not the active controller, the error is NOT_CONTROLLER(41). The broker then sends the request again.
- If the embedded request is malformed, or its API cannot be forwarded, the error is INVALID_REQUEST(42).
- Otherwise the embedded request is handled, and the Envelope response contains the embedded response. If an error code
  in the embedded response is NOT_CONTROLLER, the Envelope response has this error only (`core.envelope.in_envelope`).
"""

from typing import Any

from reference_broker.core.api import ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode, MalformedRequestError
from reference_broker.protocol.messages import read_header

_FORWARDABLE = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 64})
"""Keys of the APIs that brokers forward: the administrative requests that only the active controller can process."""


def handle(node: ServingNode, request: Request, now: Now) -> Any:
    """Handle the embedded request, or return an error."""
    if node.controller is None or not node.controller.is_active:
        return request.replies.EnvelopeResponse(error_code=ErrorCode.not_controller, response_data=None)
    try:
        header = read_header(request.body.request_data)
        if header.api_key in _FORWARDABLE:
            node.serve_enveloped(request, header, now)
            # The connection is not busy any more if the response was sent at once.
            return RequestOutcome.DEFERRED if request.connection.busy else RequestOutcome.NO_RESPONSE
    except MalformedRequestError:
        pass
    return request.replies.EnvelopeResponse(error_code=ErrorCode.invalid_request, response_data=None)
