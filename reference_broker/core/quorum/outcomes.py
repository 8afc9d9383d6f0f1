"""What a node makes of the answers to its own questions.

Rules of this file:
- The epoch comes first. An answer from an older epoch is void; one from a newer epoch, or with an error that says that
  the question was asked in the wrong one, changes the state before anything else of it is believed.
- Answers to questions of an earlier state never come here (`connections`).
- False, or an `InconsistentMessageError`, makes the node back off from that voter.
"""

from reference_broker.core.clock import Now
from reference_broker.core.quorum.messages import (
    NO_LEADER,
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    FetchResponse,
    FetchSnapshotResponse,
    InconsistentMessageError,
    Request,
    Response,
    VoteResponse,
)
from reference_broker.core.quorum.quorum_state import QuorumState
from reference_broker.core.quorum.states import (
    Candidate,
    Follower,
    Prospective,
    Resigned,
)
from reference_broker.core.tracer import QuorumLogTruncated
from reference_broker.protocol.errors import ErrorCode

_WRONG_EPOCH = {ErrorCode.fenced_leader_epoch, ErrorCode.not_leader_or_follower}


class Outcomes:
    """The asking side of one node."""

    def __init__(self, node: QuorumState) -> None:
        self._node = node

    def judge(self, voter_id: int, request: Request, response: Response, now: Now) -> bool:
        """Take in an answer; whether the voter may be asked again at once."""
        if response.top_level_error is not ErrorCode.none:
            return False
        state = self._node.state
        if not self._is_of_this_epoch(request, response, now):
            return self._node.state is not state
        match response:
            case VoteResponse():
                self._vote(voter_id, response, now)
            case BeginQuorumEpochResponse():
                pass
            case EndQuorumEpochResponse():
                if isinstance(self._node.state, Resigned):
                    self._node.state.unacknowledged.discard(voter_id)
            case FetchResponse():
                self._fetch(response, now)
            case FetchSnapshotResponse():
                return self._fetch_snapshot(response, now)
        return True

    def _is_of_this_epoch(self, request: Request, response: Response, now: Now) -> bool:
        """Whether the rest of an answer can be believed. Finding a leader in it does not stand against that."""
        node, error, epoch = self._node, response.error, response.leader_epoch
        if epoch < node.state.epoch or error is ErrorCode.unknown_leader_epoch:
            return False
        if epoch > node.state.epoch or error in _WRONG_EPOCH:
            node.see_epoch(epoch, response.leader_id, now)
            return False
        if response.leader_id != NO_LEADER:
            node.see_epoch(epoch, response.leader_id, now)
        if error is ErrorCode.invalid_request:
            raise InconsistentMessageError(f"INVALID_REQUEST for {type(request).__name__}")
        return error is ErrorCode.none or isinstance(response, FetchSnapshotResponse)

    def _vote(self, voter_id: int, response: VoteResponse, now: Now) -> None:
        state = self._node.state
        if isinstance(state, Prospective | Candidate):
            state.ballot.record(voter_id, granted=response.vote_granted)
            self._node.count_votes(now)
            if isinstance(state, Prospective) and state.ballot.is_lost:
                self._node.lose_election(state, now)

    def _follower(self) -> Follower:
        if not isinstance(self._node.state, Follower):
            raise InconsistentMessageError(f"records for a node that is {self._node.state.role.value}")
        return self._node.state

    def _fetch(self, response: FetchResponse, now: Now) -> None:
        node, state = self._node, self._follower()
        if response.diverging is not None:
            if response.diverging.offset < node.high_watermark:
                raise InconsistentMessageError(
                    f"truncation to {response.diverging.offset}, below the high watermark {node.high_watermark}"
                )
            node.log.truncate_to_end_of(response.diverging, now.wall_ms)
            node.trace(QuorumLogTruncated(node.log.end_offset))
        elif response.snapshot_id is not None:
            state.snapshot_id = response.snapshot_id
            state.snapshot.clear()
        else:
            node.log.append_as_follower(response.records, state.epoch, now.wall_ms)
            node.log.flush()
            node.advance_high_watermark(response.high_watermark)
        self._renew(state, now)

    def _fetch_snapshot(self, response: FetchSnapshotResponse, now: Now) -> bool:
        state = self._follower()
        if response.error in {ErrorCode.snapshot_not_found, ErrorCode.position_out_of_range}:
            state.snapshot_id = None  # the leader has removed it meanwhile, and will name another
        elif response.error is not ErrorCode.none or response.snapshot_id is None:
            return False
        elif (response.snapshot_id, response.position) != (state.snapshot_id, len(state.snapshot)):
            raise InconsistentMessageError(
                f"bytes from {response.position} of snapshot {response.snapshot_id}, which were not requested"
            )
        else:
            state.snapshot += response.data
            if len(state.snapshot) == response.size:
                self._node.install_snapshot(response.snapshot_id, bytes(state.snapshot), now)
                state.snapshot_id = None
                state.snapshot.clear()
        self._renew(state, now)
        return True

    def _renew(self, state: Follower, now: Now) -> None:
        state.has_fetched = True
        state.fetch_deadline_ms = self._node.patience.fetch_deadline_ms(now)
