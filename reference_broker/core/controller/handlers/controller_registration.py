"""ControllerRegistration (70), version 0: a controller registers its endpoints and features.

Follows: org.apache.kafka.controller.ClusterControlManager (KIP-919).
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.registrations import register_controller
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Register the controller."""
    response = request.replies.ControllerRegistrationResponse(error_code=ErrorCode.none, error_message=None)
    return controller.respond_when_committed(request, [register_controller(request.body)], response, now)
