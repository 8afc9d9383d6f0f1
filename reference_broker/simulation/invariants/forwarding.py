"""Responses to forwarded requests: the invariant `forwarded-error`.

| sender                | what must hold                                                                             |
|-----------------------|--------------------------------------------------------------------------------------------|
| the controller        | the error of an Envelope response is NOT_CONTROLLER if and only if the enclosed response   |
|                       | has this error, for the whole request or for an element. The error causes the broker to    |
|                       | send the request again (`RequestChannel.Request.buildResponseSend`)                        |
| a broker, to a client | the response to a forwarded request never has UNKNOWN_SERVER_ERROR: forwarded requests are |
|                       | valid, and after NOT_CONTROLLER the broker sends them again (`ForwardingManagerImpl`)      |
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.invariants.broker_requests import FORWARDED
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_ENVELOPE = 58


class ForwardingInvariants:
    """Checks of the responses to forwarded requests."""

    def __init__(self) -> None:
        self._enclosed: dict[int, set[ErrorCode]] = {}
        """By controller: the errors of a response that its next Envelope response encloses."""

    def on_response(self, watched: Watched, event: ResponseSent) -> None:
        """Check a response that a node is about to send."""
        request = event.request
        if request.envelope is not None:
            self._enclosed[watched.node_id] = set(_error_codes(event.body))
        elif request.api_key == _ENVELOPE:
            _check_envelope(watched, event.body.error_code, self._enclosed.pop(watched.node_id, None))
        elif request.api_key in FORWARDED and ErrorCode.unknown_server_error in _error_codes(event.body):
            detail = f"node {watched.node_id} returns UNKNOWN_SERVER_ERROR to {type(request.body).__name__}"
            raise InvariantViolation("forwarded-error", detail)


def _check_envelope(watched: Watched, error: ErrorCode, enclosed: set[ErrorCode] | None) -> None:
    if enclosed is not None and (error is ErrorCode.not_controller) != (ErrorCode.not_controller in enclosed):
        names = sorted(code.name for code in enclosed)
        detail = f"node {watched.node_id} returns {error.name} in an Envelope response that encloses {names}"
        raise InvariantViolation("forwarded-error", detail)


def _error_codes(entity: Any) -> Iterator[ErrorCode]:
    for each in fields(entity):
        value = getattr(entity, each.name)
        if isinstance(value, ErrorCode):
            yield value
        elif isinstance(value, tuple):
            for element in value:
                if is_dataclass(element):
                    yield from _error_codes(element)
