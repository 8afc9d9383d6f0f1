"""UnregisterBroker (64), version 0: remove a broker from the cluster's metadata.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-631).

Unknown id: BROKER_ID_NOT_REGISTERED(102). If the broker still runs, its heartbeats get STALE_BROKER_EPOCH(77) until it
is restarted.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller import membership
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Unregister the broker."""
    broker_id = request.body.broker_id
    broker = controller.image.brokers.get(broker_id)
    if broker is None:
        message = f"Broker ID {broker_id} is not currently registered"
        raise ControllerError(ErrorCode.broker_id_not_registered, message)
    records = membership.handle_broker_unregistered(broker, controller.elections)
    controller.heartbeat_manager.remove(broker_id)
    response = request.replies.UnregisterBrokerResponse(error_code=ErrorCode.none, error_message=None)
    return controller.respond_when_committed(request, records, response, now)
