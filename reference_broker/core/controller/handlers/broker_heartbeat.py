"""BrokerHeartbeat (63), versions 0-2: keep a broker's session alive, and change its state.

Follows: org.apache.kafka.controller.BrokerHeartbeatManager (KIP-631).

- A broker that is not registered, or is registered with another epoch, gets STALE_BROKER_EPOCH(77). It must be
  restarted, because it registers only when it starts.
- `current_metadata_offset` is the offset up to which the broker has applied the metadata. A broker is unfenced once it
  has applied its own registration. In a controlled shutdown, a broker may stop once all active brokers have applied
  the records that moved its leaderships to other brokers.

Gaps: `offline_log_dirs` (KIP-858) and `cordoned_log_dirs` (KIP-1066) are ignored; this broker has one directory, and
stops when that fails.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller import membership
from reference_broker.core.controller.broker_heartbeat_manager import BrokerControlState, DesiredState
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.registrations import check_broker_epoch
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_RECORDS = {
    BrokerControlState.FENCED: membership.handle_broker_fenced,
    BrokerControlState.UNFENCED: membership.handle_broker_unfenced,
    BrokerControlState.CONTROLLED_SHUTDOWN: membership.handle_broker_in_controlled_shutdown,
    BrokerControlState.SHUTDOWN_NOW: membership.handle_broker_fenced,
}
_FENCED_STATES = {BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW}


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Return whether the broker is fenced, whether it has caught up, and whether it should shut down."""
    body, image, manager = request.body, controller.image, controller.heartbeat_manager
    check_broker_epoch(image, body.broker_id, body.broker_epoch)
    broker = image.brokers[body.broker_id]
    desired = DesiredState((body.want_fence, body.want_shut_down))

    def leads() -> bool:
        return any(partition.leader == broker.broker_id for partition in image.partitions())

    state, next_state = manager.calculate_next_broker_state(broker, desired, body.current_metadata_offset, leads)
    records = _RECORDS[next_state](broker, controller.elections) if next_state is not state else []
    if next_state in _FENCED_STATES:
        manager.remove(broker.broker_id)
    else:
        manager.touch(broker, body.current_metadata_offset, now)
        controller.periodic_tasks.schedule_session_expiry(now)
    response = request.replies.BrokerHeartbeatResponse(
        error_code=ErrorCode.none,
        is_caught_up=body.current_metadata_offset >= broker.broker_epoch,
        is_fenced=next_state in _FENCED_STATES,
        should_shut_down=next_state is BrokerControlState.SHUTDOWN_NOW,
    )
    result = controller.respond_when_committed(request, records, response, now)
    if next_state is BrokerControlState.CONTROLLED_SHUTDOWN:
        manager.maybe_update_controlled_shutdown_offset(broker.broker_id, controller.next_offset - 1)
    return result
