"""BrokerHeartbeat (63), versions 0-2: a broker lives, and says what it wants to be (KIP-631). The table: `heartbeats`.

- A broker, or an epoch of it, that is not registered: STALE_BROKER_EPOCH(77); it has to register again.
- `current_metadata_offset` is how far the broker has come in the metadata; it is unfenced when it has its own
  registration, and may go, in a controlled shutdown, when all others know that it leads nothing.

Gaps: `offline_log_dirs` (KIP-858) and `cordoned_log_dirs` (KIP-1066) are not heeded; a broker of this kind has one
directory, and ends when that fails.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller import membership
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.heartbeats import BrokerControlState, Wish
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_ENTERED = {
    BrokerControlState.FENCED: membership.fenced,
    BrokerControlState.UNFENCED: membership.unfenced,
    BrokerControlState.CONTROLLED_SHUTDOWN: membership.in_controlled_shutdown,
    BrokerControlState.SHUTDOWN_NOW: membership.fenced,
}
_IS_FENCED = {BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW}


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """What the broker is now, and whether it may go."""
    body, image, heartbeats = request.body, controller.image, controller.heartbeats
    check_broker_epoch(image, body.broker_id, body.broker_epoch)
    broker = image.brokers[body.broker_id]
    wish = Wish((body.want_fence, body.want_shut_down))

    def leads() -> bool:
        return any(partition.leader == broker.broker_id for partition in image.partitions())

    state, entered = heartbeats.next_state(broker, wish, body.current_metadata_offset, leads)
    records = _ENTERED[entered](broker, controller.elections) if entered is not state else []
    if entered in _IS_FENCED:
        heartbeats.end(broker.broker_id)
    else:
        heartbeats.heard_of(broker, body.current_metadata_offset, now)
        controller.periodic_tasks.watch_sessions(now)
    response = request.replies.BrokerHeartbeatResponse(
        error_code=ErrorCode.none,
        is_caught_up=body.current_metadata_offset >= broker.broker_epoch,
        is_fenced=entered in _IS_FENCED,
        should_shut_down=entered is BrokerControlState.SHUTDOWN_NOW,
    )
    answer = controller.respond_when_committed(request, records, response, now)
    if entered is BrokerControlState.CONTROLLED_SHUTDOWN:
        heartbeats.shutting_down(broker.broker_id, controller.next_offset - 1)
    return answer
