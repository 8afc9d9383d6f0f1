"""Envelope (58), version 0: what a broker's client asks of the controller (KIP-590).

- A node that is not the active controller: NOT_CONTROLLER(41), and the broker looks for the one that is.
- An API that is not the controller's to answer, in an envelope: INVALID_REQUEST(42).
- The answer inside is that of the request inside; NOT_CONTROLLER in it becomes the envelope's own.
"""

from typing import Any

from reference_broker.core.api import ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.request import Outcome, Request
from reference_broker.protocol.errors import ErrorCode, MalformedRequestError
from reference_broker.protocol.messages import read_header

_FORWARDABLE = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 64})
"""The keys of what brokers pass on."""


def handle(node: ServingNode, request: Request, now: Now) -> Any:
    """The answer to what is inside, now or later."""
    if node.controller is None or not node.controller.is_active:
        return request.replies.EnvelopeResponse(error_code=ErrorCode.not_controller, response_data=None)
    try:
        header = read_header(request.body.request_data)
        if header.api_key in _FORWARDABLE:
            node.serve_enveloped(request, header, now)
            return Outcome.DEFERRED if request.connection.busy else Outcome.NO_RESPONSE
    except MalformedRequestError:
        pass
    return request.replies.EnvelopeResponse(error_code=ErrorCode.invalid_request, response_data=None)
