"""ControllerRegistration (70), version 0: a controller tells where it is and what it can do (KIP-919)."""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.registrations import controller_registration
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """That it is known."""
    response = request.replies.ControllerRegistrationResponse(error_code=ErrorCode.none, error_message=None)
    return controller.respond_when_committed(request, [controller_registration(request.body)], response, now)
