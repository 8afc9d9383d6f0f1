"""What a node answers when another asks. Errors and their order are those of Kafka's `KafkaRaftClient`.

| request            | refused with                                                                                   |
|--------------------|------------------------------------------------------------------------------------------------|
| any                | INCONSISTENT_CLUSTER_ID, for the whole request                                                 |
| Vote, Begin-, End- | FENCED_LEADER_EPOCH in an older epoch; INVALID_REQUEST where the request contradicts itself,   |
|   QuorumEpoch      | or what this node knows; INCONSISTENT_VOTER_SET where its sender is no voter;                  |
|                    | INVALID_VOTER_KEY where it is meant for another node, or for this one with another disk        |
| Fetch,             | FENCED_LEADER_EPOCH in an older epoch, UNKNOWN_LEADER_EPOCH in a newer one,                    |
|   FetchSnapshot    | NOT_LEADER_OR_FOLLOWER in this one; SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE                  |

A fetch for which there is nothing yet is held: until records come, the high watermark moves (KIP-1166), its time is
over, or this node leads no more. Held or not, the fetch has said how far its sender has come.
"""

from dataclasses import dataclass
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.quorum.messages import (
    NO_LEADER,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    InconsistentMessageError,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.quorum_state import QuorumState
from reference_broker.core.quorum.states import Follower, Leader, grants_vote
from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.protocol.errors import ErrorCode

_RESPONSES: dict[type[Request], type[Response]] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
}


@dataclass(frozen=True, slots=True)
class _HeldFetch:
    """A fetch that waits. `response` is what it gets if nothing happens."""

    caller: Any
    request: FetchRequest
    response: FetchResponse
    deadline_ms: int


class Answers:
    """The answering side of one node."""

    def __init__(self, node: QuorumState) -> None:
        self._node = node
        self._held: list[_HeldFetch] = []

    def answer(self, caller: Any, request: Request, now: Now) -> Response | None:
        """The answer; null if it comes later."""
        if request.cluster_id not in {"", self._node.cluster_id}:
            return _RESPONSES[type(request)](top_level_error=ErrorCode.inconsistent_cluster_id)
        try:
            return self._answer(caller, request, now)
        except InconsistentMessageError:
            state = self._node.state
            return _RESPONSES[type(request)](state.leader_id, state.epoch, error=ErrorCode.invalid_request)

    def _answer(self, caller: Any, request: Request, now: Now) -> Response | None:
        match request:
            case VoteRequest():
                return self._vote(request, now)
            case BeginQuorumEpochRequest():
                return self._begin_quorum_epoch(request, now)
            case EndQuorumEpochRequest():
                return self._end_quorum_epoch(request, now)
            case FetchRequest():
                return self._fetch_or_hold(caller, request, now)
            case FetchSnapshotRequest():
                return self._fetch_snapshot(request, now)

    # Elections

    def _vote(self, request: VoteRequest, now: Now) -> VoteResponse:
        node, last, epoch = self._node, request.last, request.replica_epoch
        # A candidate's epoch is new to its log; a prospective one may have records of the epoch that it is still in.
        is_illegal = last.epoch > epoch if request.pre_vote else last.epoch >= epoch
        if is_illegal or min(last) < 0:
            return self._vote_response(ErrorCode.invalid_request)
        error = self._check_voter(request.replica, epoch)
        if error is not ErrorCode.none:
            return self._vote_response(error)
        if epoch > node.state.epoch:
            node.see_epoch(epoch, NO_LEADER, now)
        if not self._is_meant_for_us(request.voter):
            return self._vote_response(ErrorCode.invalid_voter_key)
        is_granted = grants_vote(
            node.state,
            request.replica,
            is_log_up_to_date=node.log.is_behind_or_equal(last),
            pre_vote=request.pre_vote,
        )
        if is_granted and not request.pre_vote:
            node.vote_for(request.replica, now)
        return self._vote_response(ErrorCode.none, is_granted=is_granted)

    def _vote_response(self, error: ErrorCode, *, is_granted: bool = False) -> VoteResponse:
        return VoteResponse(self._node.state.leader_id, self._node.state.epoch, is_granted, error)

    def _begin_quorum_epoch(self, request: BeginQuorumEpochRequest, now: Now) -> BeginQuorumEpochResponse:
        node = self._node
        error = self._check_voter(ReplicaKey(request.leader_id), request.leader_epoch)
        if error is ErrorCode.none:
            node.see_epoch(request.leader_epoch, request.leader_id, now)
            if not self._is_meant_for_us(request.voter):
                error = ErrorCode.invalid_voter_key
        return BeginQuorumEpochResponse(node.state.leader_id, node.state.epoch, error)

    def _end_quorum_epoch(self, request: EndQuorumEpochRequest, now: Now) -> EndQuorumEpochResponse:
        node = self._node
        error = self._check_voter(ReplicaKey(request.leader_id), request.leader_epoch)
        if error is ErrorCode.none:
            node.see_epoch(request.leader_epoch, request.leader_id, now)
            if isinstance(node.state, Follower) and node.state.leader_id == request.leader_id:
                node.state.fetch_deadline_ms = now.monotonic_ms + self._succession_delay_ms(request)
        return EndQuorumEpochResponse(node.state.leader_id, node.state.epoch, error)

    def _succession_delay_ms(self, request: EndQuorumEpochRequest) -> int:
        """The first candidate begins at once; each further one waits twice as long as the one before."""
        candidates = request.preferred_candidates
        longest_ms = self._node.config.election_backoff_max_ms
        position = next((at for at, key in enumerate(candidates) if key.matches(self._node.local)), len(candidates))
        if position == 0 and candidates:
            return 0
        if position >= len(candidates):
            return longest_ms
        return min(longest_ms, (longest_ms >> (len(candidates) - 1)) << (position - 1))

    def _check_voter(self, sender: ReplicaKey, epoch: int) -> ErrorCode:
        """Kafka's `validateVoterOnlyRequest`, which since KIP-853 accepts any node, for it may be a voter by now.

        Static voters are known: as before KIP-853, the vote and the epoch of another node have no effect.
        """
        if epoch < self._node.state.epoch:
            return ErrorCode.fenced_leader_epoch
        if sender.id < 0:
            return ErrorCode.invalid_request
        voter = self._node.voters.get(sender.id)
        is_voter = voter is not None and (sender.directory_id is None or voter.key.matches(sender))
        return ErrorCode.none if is_voter else ErrorCode.inconsistent_voter_set

    def _is_meant_for_us(self, voter: ReplicaKey) -> bool:
        return voter.id < 0 or voter.matches(self._node.local)

    # Replication

    def _fetch_or_hold(self, caller: Any, request: FetchRequest, now: Now) -> FetchResponse | None:
        if (
            min(request.max_wait_ms, request.fetch_offset, request.last_fetched_epoch) < 0
            or request.last_fetched_epoch > request.current_leader_epoch
        ):
            return self._fetch_error(ErrorCode.invalid_request)
        response = self._fetch(request, now)
        is_news = (
            response.error is not ErrorCode.none
            or response.records
            or response.diverging
            or response.snapshot_id
            or request.high_watermark < response.high_watermark
        )
        if is_news or request.max_wait_ms == 0:
            return response
        self._held.append(_HeldFetch(caller, request, response, now.monotonic_ms + request.max_wait_ms))
        return None

    def _fetch(self, request: FetchRequest, now: Now) -> FetchResponse:
        node = self._node
        error = self._check_leadership(request.current_leader_epoch)
        if error is not ErrorCode.none:
            return self._fetch_error(error)
        assert isinstance(node.state, Leader)
        leadership, log = node.state.leadership, node.log
        where = request.fetch_offset, request.last_fetched_epoch
        records = b""
        diverging = None
        snapshot_id = log.snapshot_for(*where)
        if snapshot_id is None:
            diverging = log.divergence_of(*where)
        if snapshot_id is None and diverging is None:
            records = log.read(request.fetch_offset, request.max_bytes)
            if leadership.note_fetch(request.replica, request.fetch_offset, now):
                node.advance_high_watermark(leadership.high_watermark)
                self.answer_held(now)
        return FetchResponse(
            leader_id=node.state.leader_id,
            leader_epoch=node.state.epoch,
            high_watermark=leadership.high_watermark,
            log_start_offset=log.start_offset,
            diverging=diverging,
            snapshot_id=snapshot_id,
            records=records,
        )

    def _fetch_error(self, error: ErrorCode) -> FetchResponse:
        return FetchResponse(leader_id=self._node.state.leader_id, leader_epoch=self._node.state.epoch, error=error)

    def _check_leadership(self, epoch: int) -> ErrorCode:
        state = self._node.state
        if epoch < state.epoch:
            return ErrorCode.fenced_leader_epoch
        if epoch > state.epoch:
            return ErrorCode.unknown_leader_epoch
        return ErrorCode.none if isinstance(state, Leader) else ErrorCode.not_leader_or_follower

    def _fetch_snapshot(self, request: FetchSnapshotRequest, now: Now) -> FetchSnapshotResponse:
        node, snapshot_id, position = self._node, request.snapshot_id, request.position
        error = self._check_leadership(request.current_leader_epoch)
        size = 0
        if error is ErrorCode.none and snapshot_id not in node.log.snapshots:
            error = ErrorCode.snapshot_not_found
        if error is ErrorCode.none:
            size = node.log.snapshots.size(snapshot_id)
            if not 0 <= position < size:
                error = ErrorCode.position_out_of_range
        if error is not ErrorCode.none:
            return FetchSnapshotResponse(node.state.leader_id, node.state.epoch, error=error)
        assert isinstance(node.state, Leader)
        node.state.leadership.note_contact(request.replica, now)
        data = node.log.snapshots.read(snapshot_id, position, request.max_bytes)
        return FetchSnapshotResponse(node.state.leader_id, node.state.epoch, snapshot_id, size, position, data)

    # Held fetches

    @property
    def deadline_ms(self) -> int | None:
        """When the first held fetch has waited enough."""
        return min([held.deadline_ms for held in self._held], default=None)

    def answer_held(self, now: Now) -> None:
        """Something has changed: look at every held fetch again."""
        held, self._held = self._held, []
        for fetch in held:
            self._node.respond(fetch.caller, self._fetch(fetch.request, now))

    def expire(self, now: Now) -> None:
        """Answer those that have waited enough."""
        now_ms = now.monotonic_ms
        for fetch in [fetch for fetch in self._held if fetch.deadline_ms <= now_ms]:
            self._held.remove(fetch)
            self._node.respond(fetch.caller, fetch.response)

    def refuse_held(self) -> None:
        """The state has changed: the others shall look for the leader."""
        held, self._held = self._held, []
        for fetch in held:
            self._node.respond(fetch.caller, self._fetch_error(ErrorCode.not_leader_or_follower))

    def forget(self, caller: Any) -> None:
        """Drop what a caller that is gone was waiting for."""
        self._held = [fetch for fetch in self._held if fetch.caller != caller]
