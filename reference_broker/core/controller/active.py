"""What every handler of the controller begins with: only an active controller decides, and a refusal is an answer."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.refusals import refusal
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

Handle = Callable[[Controller, Request, Now], Any]


def only_active(handle: Handle) -> Handle:
    """Of a handler: one that answers NOT_CONTROLLER on standby, and the error that the decision raises."""

    @wraps(handle)
    def handle_if_active(controller: Controller, request: Request, now: Now) -> Any:
        if not controller.is_active:
            return refusal(request, ErrorCode.not_controller)
        try:
            return handle(controller, request, now)
        except ControllerError as error:
            return refusal(request, error.code, error.message)

    return handle_if_active
