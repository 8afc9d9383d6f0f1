"""The invariant `rejects-truncation`: a node never truncates committed records of the quorum's log.

A correct leader never returns a diverging epoch below the high watermark of a follower. Therefore the check passes such
a response to each follower at the end of a run. The follower must reject the response and keep its log
(`KafkaRaftClient.handleFetchResponse`).
"""

from reference_broker.core.quorum.messages import FetchResponse, OffsetAndEpoch
from reference_broker.core.quorum.quorum_state import Follower
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched


def check_truncation_is_rejected(watched: Watched) -> None:
    """Pass a response with a diverging epoch to a follower that has a request in flight.

    The node must not be used afterwards.

    :raises InvariantViolation: `rejects-truncation`.
    """
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
        detail = f"node {watched.node_id} with high watermark {offset + 1} accepts a truncation to {diverging}"
        raise InvariantViolation("rejects-truncation", detail)
