"""What a controller has answered is committed: the invariant `committed-before-answered`.

| name                        | what must hold                                                                        |
|-----------------------------|---------------------------------------------------------------------------------------|
| `committed-before-answered` | who is told of a decision is told once its records lie below the high watermark of    |
|                             | the metadata log (KIP-595, KIP-631)                                                   |

A controller that is active no more answers that it is none, which promises nothing.
"""

from reference_broker.core.request import Request
from reference_broker.core.tracer import RequestDecided, ResponseSent
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched


class CommittedInvariants(Observer):
    """An observer of a watch, and of its decisions and answers."""

    def __init__(self) -> None:
        self._ends: dict[int, dict[int, tuple[Request, int]]] = {}
        """By node and by identity: each request that waits, and where its last record ends at the least."""

    def ended(self, watched: Watched) -> None:
        """Nobody is answered any more."""
        self._ends.pop(watched.node_id, None)

    def decided(self, watched: Watched, event: RequestDecided) -> None:
        """The records are about to be appended."""
        if event.records:
            end_offset = watched.quorum.log.end_offset + len(event.records)
            self._ends.setdefault(watched.node_id, {})[id(event.request)] = event.request, end_offset

    def answered(self, watched: Watched, event: ResponseSent) -> None:
        """See the table. Raises `InvariantViolation`."""
        request = event.request
        _, end_offset = self._ends.get(watched.node_id, {}).pop(id(request), (request, 0))
        node = watched.node
        is_active = node is not None and node.controller is not None and node.controller.is_active
        if is_active and watched.quorum.high_watermark < end_offset:
            detail = f"{type(request.body).__name__} is answered, whose records end at {end_offset}"
            committed = f"committed up to {watched.quorum.high_watermark}"
            raise InvariantViolation("committed-before-answered", f"node {watched.node_id}: {detail}, {committed}")
