"""BrokerRegistration (62), versions 0-4: a broker joins the cluster, or joins it again.

Follows: org.apache.kafka.controller.ClusterControlManager (KIP-631).

The checks are in `controller.registrations`. The response has the broker epoch, which the broker includes in its later
requests. The epoch is the offset of the registration's first record, so that incarnations with the same id can be
distinguished.

Gaps: `previous_broker_epoch`, by which a broker reports a clean shutdown (KIP-966), is ignored.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.registrations import register_broker
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Register the broker and return its epoch."""
    records, registered = register_broker(
        request.body,
        controller.elections,
        cluster_id=controller.runtime.identity.cluster_id,
        has_session=controller.heartbeat_manager.has_valid_session(request.body.broker_id, now),
        next_offset=controller.next_offset,
    )
    if registered.fenced:
        controller.heartbeat_manager.remove(registered.broker_id)
    response = request.replies.BrokerRegistrationResponse(
        error_code=ErrorCode.none, broker_epoch=registered.broker_epoch
    )
    return controller.respond_when_committed(request, records, response, now)
