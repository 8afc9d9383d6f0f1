"""FindCoordinator (10), versions 0-6: the broker that keeps a group's offsets.

- Groups (key type 0): this broker, which creates `__consumer_offsets` at the first question. From version 4 a request
  asks for several (KIP-699).
- Another key type: INVALID_REQUEST(42).

Gaps: transactions (key type 1) and share groups (2) are INVALID_REQUEST(42). Kafka answers
COORDINATOR_NOT_AVAILABLE(15) while it creates the topic; here it exists at once.
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_GROUP = 0
_NOWHERE = {"node_id": -1, "host": "", "port": -1}


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The coordinator of each key."""
    new, body = request.replies, request.body
    error, message = _error(broker, getattr(body, "key_type", _GROUP), now)
    no_error = "NONE" if request.api_version < 4 else ""  # what Kafka writes there
    found = {"error_code": error, "error_message": message or no_error, **_NOWHERE}
    if error is ErrorCode.none:
        endpoint = broker.identity.endpoint(request.connection.listener)
        assert endpoint is not None
        found |= {"node_id": broker.identity.node_id, "host": endpoint.host, "port": endpoint.port}
    if request.api_version < 4:
        return new.FindCoordinatorResponse(**found)
    return new.FindCoordinatorResponse(
        coordinators=tuple(new.Coordinator(key=key, **found) for key in body.coordinator_keys)
    )


def _error(broker: Broker, key_type: int, now: Now) -> tuple[ErrorCode, str | None]:
    if key_type != _GROUP:
        return ErrorCode.invalid_request, f"this broker coordinates groups, not key type {key_type}"
    try:
        broker.ensure_offsets_topic(now)
    except ControllerError as error:
        return ErrorCode.coordinator_not_available, error.message
    return ErrorCode.none, None
