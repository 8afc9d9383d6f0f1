"""BrokerRegistration (62), versions 0-4: a broker joins, or joins again (KIP-631). What is checked: `registrations`.

The answer has the broker's epoch, which it says from then on: it is the offset of its registration, so that a later one
of the same id is known from an earlier one.

Gaps: a broker's own word on how it was shut down (KIP-966) is not heeded.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.registrations import broker_registration
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """The epoch that the broker has from now on."""
    records, registered = broker_registration(
        request.body,
        controller.elections,
        cluster_id=controller.runtime.identity.cluster_id,
        has_session=controller.heartbeats.has_session(request.body.broker_id, now),
        next_offset=controller.next_offset,
    )
    if registered.fenced:
        controller.heartbeats.end(registered.broker_id)
    response = request.replies.BrokerRegistrationResponse(
        error_code=ErrorCode.none, broker_epoch=registered.broker_epoch
    )
    return controller.respond_when_committed(request, records, response, now)
