"""Commit of a controller's records before its response: the invariant `committed-before-response`.

| name                        | what must hold                                                                        |
|-----------------------------|---------------------------------------------------------------------------------------|
| `committed-before-response` | the active controller sends a response only when the records of the request are below |
|                             | the high watermark of the metadata log (KIP-595, KIP-631)                             |

A controller that is no longer active is not checked, because it returns NOT_CONTROLLER.
"""

from reference_broker.core.request import Request
from reference_broker.core.tracer import RequestDecided, ResponseSent
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched


class CommittedInvariants(Observer):
    """Check of `committed-before-response` at each response of an active controller."""

    def __init__(self) -> None:
        self._ends: dict[int, dict[int, tuple[Request, int]]] = {}
        """By node and `id` of a request: the pending request, and the lowest possible end offset of its records."""

    def ended(self, watched: Watched) -> None:
        """Remove the pending requests of a node that ended."""
        self._ends.pop(watched.node_id, None)

    def on_decision(self, watched: Watched, event: RequestDecided) -> None:
        """Record a request whose records are about to be appended."""
        if event.records:
            end_offset = watched.quorum.log.end_offset + len(event.records)
            self._ends.setdefault(watched.node_id, {})[id(event.request)] = event.request, end_offset

    def on_response(self, watched: Watched, event: ResponseSent) -> None:
        """Check a response.

        :raises InvariantViolation: `committed-before-response`.
        """
        request = event.request
        _, end_offset = self._ends.get(watched.node_id, {}).pop(id(request), (request, 0))
        node = watched.node
        is_active = node is not None and node.controller is not None and node.controller.is_active
        if is_active and watched.quorum.high_watermark < end_offset:
            detail = f"the records of {type(request.body).__name__} end at {end_offset} when its response is sent"
            committed = f"the high watermark is {watched.quorum.high_watermark}"
            raise InvariantViolation("committed-before-response", f"node {watched.node_id}: {detail}, {committed}")
