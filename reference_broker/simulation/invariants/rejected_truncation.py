"""The invariant `rejects-truncation`: a node never truncates committed records of the quorum's log.

No correct leader returns a diverging epoch below a follower's high watermark, so each run ends with such a response for
each follower. The follower must reject it, and keep its log (`KafkaRaftClient.handleFetchResponse`).
"""

from reference_broker.core.quorum.messages import FetchResponse, OffsetAndEpoch
from reference_broker.core.quorum.quorum_state import Follower
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched


def check_truncation_is_rejected(watched: Watched) -> None:
    """Respond to the request that a follower has in flight. The node must not be used after that."""
    quorum, state = watched.quorum, watched.quorum.state
    requests = quorum.request_manager.inflight_requests
    offset = quorum.high_watermark - 1
    if not isinstance(state, Follower) or not requests or offset < quorum.log.start_offset:
        return
    now, diverging = watched.machine.now, OffsetAndEpoch(offset, quorum.log.epoch_for_offset(offset))
    request_id = quorum.request_manager.on_request_sent(state.leader_id, requests[0], now.monotonic_ms)
    response = FetchResponse(state.leader_id, state.epoch, quorum.high_watermark, diverging=diverging)
    quorum.handle_response(request_id, response, now)
    if quorum.rejected_response is None or quorum.log.end_offset <= offset:
        detail = f"node {watched.node_id} has the high watermark {offset + 1}, and accepts a truncation to {diverging}"
        raise InvariantViolation("rejects-truncation", detail)
