"""End of a controlled shutdown: the invariant `others-caught-up`.

When a broker begins a controlled shutdown, the active controller moves its leaderships to other brokers. The controller
lets the broker shut down only when all other active brokers have applied the records of this move: their heartbeats
report a metadata offset at or above the last of these records. A broker is active if it is unfenced and not in
controlled shutdown (`BrokerHeartbeatManager.calculateNextBrokerState`, KIP-841).
"""

from dataclasses import dataclass, field

from reference_broker.core.controller.controller import Controller
from reference_broker.core.tracer import RequestDecided
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_HEARTBEAT = 63
_Incarnation = tuple[int, int]
"""A broker id and a broker epoch."""


@dataclass(slots=True)
class _Heartbeats:
    """Heartbeats that an active controller has received in one epoch.

    :ivar offsets: by broker: the metadata offset in its last heartbeat.
    :ivar moved: by broker in controlled shutdown: the offset of the last record that moved its leaderships.
    """

    epoch: int
    offsets: dict[_Incarnation, int] = field(default_factory=dict)
    moved: dict[_Incarnation, int] = field(default_factory=dict)


class ControlledShutdownInvariants:
    """Checks of the heartbeats of brokers in controlled shutdown."""

    def __init__(self) -> None:
        self._heartbeats: dict[int, _Heartbeats] = {}
        """By node: the heartbeats of its last epoch as the active controller."""

    def on_decision(self, watched: Watched, event: RequestDecided) -> None:
        """Record the metadata offset of a heartbeat, and check the end of a controlled shutdown."""
        if event.request.api_key != _HEARTBEAT:
            return
        epoch, body = watched.quorum.state.epoch, event.request.body
        heartbeats = self._heartbeats.get(watched.node_id)
        if heartbeats is None or heartbeats.epoch != epoch:
            heartbeats = self._heartbeats[watched.node_id] = _Heartbeats(epoch)
        sender = body.broker_id, body.broker_epoch
        heartbeats.offsets[sender] = body.current_metadata_offset
        if event.response.should_shut_down:
            _check_others(watched, heartbeats, sender)
        elif body.want_shut_down:
            heartbeats.moved.setdefault(sender, _controller(watched).next_offset + len(event.records) - 1)


def _check_others(watched: Watched, heartbeats: _Heartbeats, sender: _Incarnation) -> None:
    """Check the last heartbeats of the other brokers, unless the sender was fenced in its controlled shutdown."""
    brokers = _controller(watched).image.brokers
    moved = heartbeats.moved.pop(sender, None)
    if moved is None or brokers[sender[0]].fenced:
        return
    for broker in brokers.values():
        other = broker.broker_id, broker.broker_epoch
        is_active = other != sender and not broker.fenced and other not in heartbeats.moved
        if is_active and heartbeats.offsets.get(other, -1) < moved:
            detail = f"node {watched.node_id} lets broker {sender[0]} shut down: broker {other[0]} has not reported"
            raise InvariantViolation("others-caught-up", f"{detail} the metadata up to {moved}")


def _controller(watched: Watched) -> Controller:
    assert watched.node is not None
    assert watched.node.controller is not None
    return watched.node.controller
