"""Envelope (58), version 0: a client's request that a broker forwards to the controller.

Follows: kafka.server.EnvelopeUtils (KIP-590).

- A node that is not the active controller: NOT_CONTROLLER(41); the broker then sends the request again.
- An embedded request that is malformed, or whose API cannot be forwarded: INVALID_REQUEST(42).
- The Envelope response contains the embedded response. NOT_CONTROLLER in the embedded response becomes the error of the
  Envelope response.
"""

from typing import Any

from reference_broker.core.api import ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode, MalformedRequestError
from reference_broker.protocol.messages import read_header

_FORWARDABLE = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 64})
"""Keys of the APIs that brokers forward."""


def handle(node: ServingNode, request: Request, now: Now) -> Any:
    """Serve the embedded request."""
    if node.controller is None or not node.controller.is_active:
        return request.replies.EnvelopeResponse(error_code=ErrorCode.not_controller, response_data=None)
    try:
        header = read_header(request.body.request_data)
        if header.api_key in _FORWARDABLE:
            node.serve_enveloped(request, header, now)
            return RequestOutcome.DEFERRED if request.connection.busy else RequestOutcome.NO_RESPONSE
    except MalformedRequestError:
        pass
    return request.replies.EnvelopeResponse(error_code=ErrorCode.invalid_request, response_data=None)
