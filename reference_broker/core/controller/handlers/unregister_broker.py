"""UnregisterBroker (64), version 0: an administrator takes a broker out of the cluster's metadata (KIP-631).

An id that is not registered: BROKER_ID_NOT_REGISTERED(102). A broker that still runs is told STALE_BROKER_EPOCH(77) at
each heartbeat, until it is started again.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller import membership
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """That it is gone."""
    broker_id = request.body.broker_id
    broker = controller.image.brokers.get(broker_id)
    if broker is None:
        message = f"Broker ID {broker_id} is not currently registered"
        raise ControllerError(ErrorCode.broker_id_not_registered, message)
    records = membership.unregistered(broker, controller.elections)
    controller.heartbeats.end(broker_id)
    response = request.replies.UnregisterBrokerResponse(error_code=ErrorCode.none, error_message=None)
    return controller.respond_when_committed(request, records, response, now)
