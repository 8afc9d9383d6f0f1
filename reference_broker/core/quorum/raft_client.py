"""A node of the KRaft quorum, without IO: requests, responses, timeouts and elections.

Follows: org.apache.kafka.raft.KafkaRaftClient (KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166).

The caller passes in requests, responses, failed requests, records to append, and the time. The node returns effects
(`take_effects`), such as messages to send, and the time of its next `poll` (`deadline_ms`). It stores its log and its
vote on its disk. `quorum_state` has the states and their transitions; this module has the actions in each state:

| state       | sends                                                  | until                                         |
|-------------|--------------------------------------------------------|-----------------------------------------------|
| Unattached  | Fetch to a random voter, to learn the leader           | the election timeout; observers: indefinitely |
| Prospective | Vote with `pre_vote` to all voters                     | the election timeout                          |
| Candidate   | Vote to all voters                                     | the election timeout                          |
| Follower    | Fetch or FetchSnapshot to the leader; to a random      | the fetch timeout                             |
|             | voter after a failed request to the leader             |                                               |
| Leader      | BeginQuorumEpoch to voters that do not fetch           | the check-quorum timeout                      |
| Resigned    | EndQuorumEpoch to voters that have not acknowledged it | the election timeout                          |

The response has the first error of this table whose condition is true for the request:

| request            | error                   | condition                                                             |
|--------------------|-------------------------|-----------------------------------------------------------------------|
| any                | INCONSISTENT_CLUSTER_ID | another cluster id; a top-level error                                 |
| Vote, Fetch        | INVALID_REQUEST         | fields that contradict each other, or invalid negative values         |
| Vote, Begin- and   | FENCED_LEADER_EPOCH     | an older epoch                                                        |
|   EndQuorumEpoch   | INVALID_REQUEST         | a negative id of the sender                                           |
|                    | INCONSISTENT_VOTER_SET  | the sender is not a voter                                             |
|                    | INVALID_REQUEST         | an epoch or leader that contradicts the state of this node            |
|                    | INVALID_VOTER_KEY       | the voter key is not of this node (EndQuorumEpoch has no voter key)   |
| Fetch,             | FENCED_LEADER_EPOCH     | an older epoch                                                        |
|   FetchSnapshot    | UNKNOWN_LEADER_EPOCH    | a newer epoch                                                         |
|                    | NOT_LEADER_OR_FOLLOWER  | this node does not lead the epoch                                     |
| FetchSnapshot      | SNAPSHOT_NOT_FOUND      | no snapshot with this id                                              |
|                    | POSITION_OUT_OF_RANGE   | a position outside the snapshot                                       |

Rules of this file:
- Time and randomness are arguments. Equal inputs on equal disks give equal effects.
- State is durable before an effect depends on it: a vote before the response that grants it, a leader's records before
  they count towards the high watermark, a follower's records before the next fetch.
- A response to a request of an earlier state is dropped (`request_manager`). Of any other response, the epoch and the
  error are handled first:
  - If the epoch is older than the node's, or the error is UNKNOWN_LEADER_EPOCH, the response is ignored.
  - If the epoch is newer, or the error is FENCED_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER, the node adopts the epoch and
    the leader, and ignores the other fields.
  - In both cases the node backs off from the sender, unless its state has changed.
- A Fetch without records to return waits until records are appended, the high watermark advances (KIP-1166), the
  request's maximum wait expires, or the state changes. Its fetch offset counts from the arrival of the request.
- A node that is shutting down starts no election. It completes an election in progress, and waits for another leader.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.disk import Disk
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.control_records import leader_change_batch
from reference_broker.core.quorum.effects import (
    Effect,
    HighWatermarkAdvanced,
    LeaderChanged,
    ResponseRejected,
    SendRequest,
    SendResponse,
    SnapshotInstalled,
)
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.messages import (
    MAX_EPOCH,
    NO_LEADER,
    UNKNOWN_HIGH_WATERMARK,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    InconsistentMessageError,
    OffsetAndEpoch,
    QuorumDescription,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY, QuorumLog
from reference_broker.core.quorum.quorum_state import (
    NEVER_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    QuorumState,
    Resigned,
    State,
    Trigger,
    Unattached,
)
from reference_broker.core.quorum.request_manager import RequestManager
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet
from reference_broker.core.tracer import (
    QuorumFetchRecorded,
    QuorumLogTruncated,
    QuorumRequestHandled,
    QuorumRequestReceived,
    QuorumStateChanged,
    SnapshotFetched,
    SnapshotGenerated,
    Tracer,
    no_tracer,
)
from reference_broker.protocol.errors import ErrorCode

_RESPONSE_TYPES: dict[type[Request], type[Response]] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
}
_EPOCH_ERRORS = {ErrorCode.fenced_leader_epoch, ErrorCode.not_leader_or_follower}
"""Errors of a response whose epoch and leader the receiver adopts."""


class NotLeaderError(Exception):
    """Error for an append on a node that does not lead the epoch."""


@dataclass(frozen=True, slots=True)
class _DelayedFetch:
    """A Fetch that waits for records. `response` has no records, and is sent if the maximum wait expires."""

    caller: Any
    request: FetchRequest
    response: FetchResponse
    deadline_ms: int


class KafkaRaftClient:
    """One node, a voter or an observer, restored from its disk after a shutdown or crash.

    :param local: id of this node, and id of its directory.
    :param random_below: returns a random number below its argument, for election timeouts.
    :param clean: whether the log was closed by a clean shutdown.
    :ivar deadline_ms: monotonic time of the next `poll`; null if only a message requires one.
    :ivar rejected_response: the last response that contradicted the state of this node.
    """

    def __init__(
        self,
        *,
        local: ReplicaKey,
        voters: VoterSet,
        cluster_id: str,
        config: QuorumConfig,
        disk: Disk,
        random_below: Callable[[int], int],
        now: Now,
        clean: bool = False,
        trace: Tracer = no_tracer,
    ) -> None:
        self.local = local
        self.voters = voters
        self.cluster_id = cluster_id
        self.config = config
        self.log = QuorumLog(disk, config.log, now.wall_ms, clean=clean)
        self.high_watermark = UNKNOWN_HIGH_WATERMARK
        self.request_manager = RequestManager(config)
        self.is_shutting_down = False
        self.rejected_response: ResponseRejected | None = None
        self.deadline_ms: int | None = None
        self._leader_high_watermark = UNKNOWN_HIGH_WATERMARK
        self._random_below = random_below
        self._trace = trace
        self._effects: list[Effect] = []
        self._delayed_fetches: list[_DelayedFetch] = []
        self._last_leader: tuple[int, int] | None = None
        self._quorum = QuorumState(
            local,
            voters,
            config,
            ElectionStateStore(disk, QUORUM_LOG_DIRECTORY),
            random_below=random_below,
            on_transition=self._on_transition,
        )
        self._quorum.initialize(self.log.last_epoch, now)
        if self._quorum.is_only_voter:
            if isinstance(self.state, Candidate):
                self._maybe_transition_forward(now)
            else:
                self._transition_to_prospective(Trigger.ONLY_VOTER, now)
        self.poll(now)

    @property
    def state(self) -> State:
        """The quorum state of this node: role, epoch, leader and vote."""
        return self._quorum.state

    @property
    def election(self) -> ElectionState:
        """The durable part of the state."""
        return self._quorum.persistent

    @property
    def is_caught_up(self) -> bool:
        """Whether the log reaches the highest high watermark of a leader; false if no leader has sent one."""
        return self.high_watermark == self._leader_high_watermark != UNKNOWN_HIGH_WATERMARK

    @property
    def has_effects(self) -> bool:
        """Whether there are effects to take."""
        return bool(self._effects)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effects that have not been taken yet."""
        return tuple(self._effects)

    @property
    def delayed_fetches(self) -> int:
        """The number of fetches that wait for records."""
        return len(self._delayed_fetches)

    @property
    def may_stop(self) -> bool:
        """Whether a node that is shutting down need not wait for another leader.

        True if this node is an observer, if another node leads, or if the other voters that are reachable are too few
        to elect a leader.
        """
        if not self._quorum.is_voter or self.state.leader_id not in {NO_LEADER, self.local.id}:
            return True
        others = set(self._quorum.other_voters)
        if isinstance(self.state, Resigned):
            others -= self.state.unreachable
        return len(others) < self.voters.majority

    @property
    def last_majority_contact_ms(self) -> int | None:
        """Monotonic time of the last contact with the quorum; null if this node is neither leader nor follower.

        For a leader, this is the last fetch of a majority. For a follower, it is the last start of the fetch timeout,
        which is restarted by each response of the leader.
        """
        match self.state:
            case Leader():
                return self.state.last_majority_fetch_ms
            case Follower():
                return self.state.fetch_deadline_ms - self.config.fetch_timeout_ms
        return None

    def describe(self, now: Now) -> QuorumDescription | None:
        """Return the quorum as DescribeQuorum shows it; null if this node does not lead."""
        return self.state.describe(now) if isinstance(self.state, Leader) else None

    # Effects and inputs

    def take_effects(self) -> list[Effect]:
        """Remove and return the effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def handle_request(self, caller: Any, request: Request, now: Now) -> None:
        """Handle a request of another node; `caller` is passed back in the effect with the response."""
        self._trace(QuorumRequestReceived(request, now))
        response = self._handle_request(caller, request, now)
        if response is not None:
            self._effects.append(SendResponse(caller, response))
        self.poll(now)
        self._trace(QuorumRequestHandled(request))

    def handle_response(self, request_id: int, response: Response, now: Now) -> None:
        """Handle the response to a request of this node."""
        completed = self.request_manager.complete(request_id)
        if completed is not None:
            voter_id, request = completed
            try:
                is_handled = self._handle_response(voter_id, request, response, now)
            except InconsistentMessageError as error:
                self.rejected_response = ResponseRejected(voter_id, str(error))
                self._effects.append(self.rejected_response)
                is_handled = False
            if not is_handled:
                self.request_manager.back_off(voter_id, now.monotonic_ms)
        self.poll(now)

    def fail_request(self, request_id: int, now: Now) -> None:
        """Handle the failure of a request, such as a closed connection or an invalid response."""
        completed = self.request_manager.complete(request_id)
        if completed is not None:
            voter_id, _ = completed
            self.request_manager.back_off(voter_id, now.monotonic_ms)
            if isinstance(self.state, Resigned):
                self.state.unreachable.add(voter_id)
        self.poll(now)

    def disconnect(self, caller: Any) -> None:
        """Drop the delayed fetches of a closed connection."""
        self._delayed_fetches = [fetch for fetch in self._delayed_fetches if fetch.caller != caller]

    def append(self, batches: Sequence[bytes], epoch: int, now: Now) -> int:
        """Append batches, encoded by `encode_batch`, and return the log end offset.

        The batches are committed when the high watermark reaches that offset. Raises `NotLeaderError` if this node does
        not lead `epoch`.
        """
        if not isinstance(self.state, Leader) or self.state.epoch != epoch:
            raise NotLeaderError(f"node {self.local.id} does not lead epoch {epoch}")
        self._append_as_leader(self.state, batches, now)
        self.poll(now)
        return self.log.end_offset

    def resign(self, now: Now) -> None:
        """Resign if this node leads. Voters with longer logs are preferred as successors."""
        if isinstance(self.state, Leader):
            self._quorum.transition_to_resigned(now)
        self.poll(now)

    def shut_down(self, now: Now) -> None:
        """Resign if this node leads, and start no more elections. The shutdown is complete when `may_stop` is true."""
        self.is_shutting_down = True
        self.resign(now)

    def create_snapshot(self, end_offset: int, data: bytes) -> OffsetAndEpoch:
        """Store a snapshot, encoded by `encode_snapshot`, of all records below a committed offset (KIP-630)."""
        assert self.log.start_offset < end_offset <= self.high_watermark
        snapshot_id = OffsetAndEpoch(end_offset, self.log.epoch_for_offset(end_offset - 1))
        self.log.store_snapshot(snapshot_id, data)
        self._trace(SnapshotGenerated(end_offset))
        return snapshot_id

    # Transitions

    def _on_transition(self) -> None:
        """Remove requests, backoffs and delayed fetches of the previous state. The fetches get an error response."""
        state = self.state
        self._trace(QuorumStateChanged(state.role, state.epoch, state.leader_id))
        self.request_manager.reset()
        delayed, self._delayed_fetches = self._delayed_fetches, []
        for fetch in delayed:
            self._effects.append(SendResponse(fetch.caller, self._fetch_error(ErrorCode.not_leader_or_follower)))
        if self._last_leader != (state.leader_id, state.epoch):
            self._last_leader = state.leader_id, state.epoch
            start = state.epoch_start_offset if isinstance(state, Leader) else None
            self._effects.append(LeaderChanged(state.leader_id, state.epoch, start))

    def _transition_to_prospective(self, trigger: Trigger, now: Now) -> None:
        self._quorum.transition_to_prospective(trigger, now)
        self._maybe_transition_forward(now)

    def _maybe_transition_forward(self, now: Now) -> None:
        """Become a candidate after a successful pre-vote, and leader after a successful vote (KIP-996)."""
        match self.state:
            case Prospective() if self.state.election.is_vote_granted and self.state.epoch < MAX_EPOCH:
                self._quorum.transition_to_candidate(now)
                self._maybe_transition_forward(now)
            case Candidate() if self.state.election.is_vote_granted:
                granting_voters = self.state.election.granting_voters
                leader = self._quorum.transition_to_leader(self.log.end_offset, now)
                batch = leader_change_batch(self.local.id, self.voters.ids, granting_voters, now.wall_ms)
                self._append_as_leader(leader, [batch], now)

    def _transition_after_election_lost(self, state: Prospective, now: Now) -> None:
        """Return to the known leader, or become Unattached (`prospectiveTransitionAfterElectionLost`)."""
        if self.voters.get(state.leader_id) is not None and state.leader_id != self.local.id:
            self._quorum.transition_to_follower(state.epoch, state.leader_id, now)
        else:
            self._quorum.transition_to_unattached(Trigger.ELECTION_LOST, state.epoch, state.leader_id, now)

    # Log and high watermark

    def _append_as_leader(self, state: Leader, batches: Sequence[bytes], now: Now) -> None:
        for batch in batches:
            self.log.append_as_leader(batch, state.epoch, now.wall_ms)
        self.log.flush()
        if state.update_local_state(self.log.end_offset):
            self._update_high_watermark(state.high_watermark)
        self._complete_delayed_fetches(now)

    def _update_high_watermark(self, offset: int) -> None:
        """Advance the high watermark to that of the leader, `offset`, but at most to the end of this log."""
        self._leader_high_watermark = max(offset, self._leader_high_watermark)
        offset = min(offset, self.log.end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._effects.append(HighWatermarkAdvanced(offset))

    # Requests: elections

    def _handle_request(self, caller: Any, request: Request, now: Now) -> Response | None:
        """Return the response, or null if it is delayed."""
        if request.cluster_id not in {"", self.cluster_id}:
            return _RESPONSE_TYPES[type(request)](top_level_error=ErrorCode.inconsistent_cluster_id)
        try:
            match request:
                case VoteRequest():
                    return self._handle_vote_request(request, now)
                case BeginQuorumEpochRequest():
                    return self._handle_begin_quorum_epoch_request(request, now)
                case EndQuorumEpochRequest():
                    return self._handle_end_quorum_epoch_request(request, now)
                case FetchRequest():
                    return self._handle_fetch_request(caller, request, now)
                case FetchSnapshotRequest():
                    return self._handle_fetch_snapshot_request(request, now)
        except InconsistentMessageError:
            state = self.state
            return _RESPONSE_TYPES[type(request)](state.leader_id, state.epoch, error=ErrorCode.invalid_request)

    def _handle_vote_request(self, request: VoteRequest, now: Now) -> VoteResponse:
        """Grant or reject a vote or a pre-vote (KIP-595, KIP-996)."""
        last, epoch = request.last, request.replica_epoch
        # A candidate has no records of its new epoch; a prospective node may have records of its current epoch.
        is_invalid = last.epoch > epoch if request.pre_vote else last.epoch >= epoch
        if is_invalid or min(last) < 0:
            return self._vote_response(ErrorCode.invalid_request)
        error = self._validate_voter_only_request(request.replica, epoch)
        if error is not ErrorCode.none:
            return self._vote_response(error)
        if epoch > self.state.epoch:
            self._quorum.maybe_transition(epoch, NO_LEADER, now)
        if not self._is_valid_voter_key(request.voter):
            return self._vote_response(ErrorCode.invalid_voter_key)
        is_granted = self._quorum.can_grant_vote(
            request.replica, is_log_up_to_date=self.log.is_behind_or_equal(last), is_pre_vote=request.pre_vote
        )
        if is_granted and not request.pre_vote:
            self._quorum.add_voted_state(request.replica, now)
        return self._vote_response(ErrorCode.none, is_granted=is_granted)

    def _vote_response(self, error: ErrorCode, *, is_granted: bool = False) -> VoteResponse:
        return VoteResponse(self.state.leader_id, self.state.epoch, is_granted, error)

    def _handle_begin_quorum_epoch_request(
        self, request: BeginQuorumEpochRequest, now: Now
    ) -> BeginQuorumEpochResponse:
        """Follow the leader that sent the request (KIP-595). Return an error for another node's voter key (KIP-853)."""
        error = self._validate_voter_only_request(ReplicaKey(request.leader_id), request.leader_epoch)
        if error is ErrorCode.none:
            self._quorum.maybe_transition(request.leader_epoch, request.leader_id, now)
            if not self._is_valid_voter_key(request.voter):
                error = ErrorCode.invalid_voter_key
        return BeginQuorumEpochResponse(self.state.leader_id, self.state.epoch, error)

    def _handle_end_quorum_epoch_request(self, request: EndQuorumEpochRequest, now: Now) -> EndQuorumEpochResponse:
        """Schedule an election, earlier if the leader prefers this node as its successor (KIP-595)."""
        error = self._validate_voter_only_request(ReplicaKey(request.leader_id), request.leader_epoch)
        if error is ErrorCode.none:
            self._quorum.maybe_transition(request.leader_epoch, request.leader_id, now)
            if isinstance(self.state, Follower) and self.state.leader_id == request.leader_id:
                backoff_ms = self._end_epoch_election_backoff_ms(request.preferred_candidates)
                self.state.fetch_deadline_ms = now.monotonic_ms + backoff_ms
        return EndQuorumEpochResponse(self.state.leader_id, self.state.epoch, error)

    def _end_epoch_election_backoff_ms(self, candidates: tuple[ReplicaKey, ...]) -> int:
        """Return the time until this node starts an election, by its position among the preferred candidates.

        The first candidate does not wait, and the last one waits half of `election_backoff_max_ms`. In between, each
        candidate waits half as long as the next one. A node that is not a candidate waits for the maximum.
        """
        max_ms = self.config.election_backoff_max_ms
        position = next((index for index, key in enumerate(candidates) if key.matches(self.local)), len(candidates))
        if position == 0 and candidates:
            return 0
        if position >= len(candidates):
            return max_ms
        return min(max_ms, (max_ms >> (len(candidates) - 1)) << (position - 1))

    def _validate_voter_only_request(self, sender: ReplicaKey, epoch: int) -> ErrorCode:
        """Reject an older epoch, and a sender that is not a voter.

        Since KIP-853, Kafka accepts any sender, because the sender may have become a voter. Here the voters are
        static; any other sender is rejected, as before KIP-853.
        """
        if epoch < self.state.epoch:
            return ErrorCode.fenced_leader_epoch
        if sender.id < 0:
            return ErrorCode.invalid_request
        voter = self.voters.get(sender.id)
        is_voter = voter is not None and (sender.directory_id is None or voter.key.matches(sender))
        return ErrorCode.none if is_voter else ErrorCode.inconsistent_voter_set

    def _is_valid_voter_key(self, voter: ReplicaKey) -> bool:
        return voter.id < 0 or voter.matches(self.local)

    # Requests: replication

    def _validate_leader_only_request(self, epoch: int) -> ErrorCode:
        if epoch < self.state.epoch:
            return ErrorCode.fenced_leader_epoch
        if epoch > self.state.epoch:
            return ErrorCode.unknown_leader_epoch
        return ErrorCode.none if isinstance(self.state, Leader) else ErrorCode.not_leader_or_follower

    def _handle_fetch_request(self, caller: Any, request: FetchRequest, now: Now) -> FetchResponse | None:
        """Return the response, or delay it until there are records or a newer high watermark (KIP-595, KIP-1166)."""
        if (
            min(request.max_wait_ms, request.fetch_offset, request.last_fetched_epoch) < 0
            or request.last_fetched_epoch > request.current_leader_epoch
        ):
            return self._fetch_error(ErrorCode.invalid_request)
        response = self._try_complete_fetch_request(request, now)
        is_complete = (
            response.error is not ErrorCode.none
            or response.records
            or response.diverging
            or response.snapshot_id
            or request.high_watermark < response.high_watermark
        )
        if is_complete or request.max_wait_ms == 0:
            return response
        deadline_ms = now.monotonic_ms + request.max_wait_ms
        self._delayed_fetches.append(_DelayedFetch(caller, request, response, deadline_ms))
        return None

    def _try_complete_fetch_request(self, request: FetchRequest, now: Now) -> FetchResponse:
        """Return a snapshot id (KIP-630), a diverging epoch (KIP-595), or records, and then record the offset."""
        error = self._validate_leader_only_request(request.current_leader_epoch)
        if error is not ErrorCode.none:
            return self._fetch_error(error)
        state, log = self.state, self.log
        assert isinstance(state, Leader)
        replica_end = request.fetch_offset, request.last_fetched_epoch
        records = b""
        diverging = None
        snapshot_id = log.snapshot_for(*replica_end)
        if snapshot_id is None:
            diverging = log.diverging_epoch(*replica_end)
        if snapshot_id is None and diverging is None:
            records = log.read(request.fetch_offset, request.max_bytes)
            has_advanced = state.update_replica_state(request.replica, request.fetch_offset, now)
            self._trace(QuorumFetchRecorded(request.replica, request.fetch_offset, now))
            if has_advanced:
                self._update_high_watermark(state.high_watermark)
                self._complete_delayed_fetches(now)
        return FetchResponse(
            leader_id=self.state.leader_id,
            leader_epoch=self.state.epoch,
            high_watermark=state.high_watermark,
            log_start_offset=log.start_offset,
            diverging=diverging,
            snapshot_id=snapshot_id,
            records=records,
        )

    def _fetch_error(self, error: ErrorCode) -> FetchResponse:
        return FetchResponse(leader_id=self.state.leader_id, leader_epoch=self.state.epoch, error=error)

    def _complete_delayed_fetches(self, now: Now) -> None:
        """Respond to all delayed fetches, because records were appended, or the high watermark has advanced."""
        delayed, self._delayed_fetches = self._delayed_fetches, []
        for fetch in delayed:
            response = self._try_complete_fetch_request(fetch.request, now)
            self._effects.append(SendResponse(fetch.caller, response))

    def _expire_delayed_fetches(self, now: Now) -> None:
        for fetch in [fetch for fetch in self._delayed_fetches if fetch.deadline_ms <= now.monotonic_ms]:
            self._delayed_fetches.remove(fetch)
            self._effects.append(SendResponse(fetch.caller, fetch.response))

    def _handle_fetch_snapshot_request(self, request: FetchSnapshotRequest, now: Now) -> FetchSnapshotResponse:
        """Return a part of a snapshot (KIP-630)."""
        snapshots, snapshot_id, position = self.log.snapshots, request.snapshot_id, request.position
        error = self._validate_leader_only_request(request.current_leader_epoch)
        size = 0
        if error is ErrorCode.none and snapshot_id not in snapshots:
            error = ErrorCode.snapshot_not_found
        if error is ErrorCode.none:
            size = snapshots.size(snapshot_id)
            if not 0 <= position < size:
                error = ErrorCode.position_out_of_range
        if error is not ErrorCode.none:
            return FetchSnapshotResponse(self.state.leader_id, self.state.epoch, error=error)
        assert isinstance(self.state, Leader)
        self.state.update_check_quorum(request.replica, now)
        data = snapshots.read(snapshot_id, position, request.max_bytes)
        return FetchSnapshotResponse(self.state.leader_id, self.state.epoch, snapshot_id, size, position, data)

    # Responses

    def _handle_response(self, voter_id: int, request: Request, response: Response, now: Now) -> bool:
        """Handle a response. Return False if the node must back off from the voter that sent it."""
        if response.top_level_error is not ErrorCode.none:
            return False
        state = self.state
        if not self._maybe_handle_common_response(request, response, now):
            return self.state is not state  # a new state needs no backoff
        match response:
            case VoteResponse():
                self._handle_vote_response(voter_id, response, now)
            case BeginQuorumEpochResponse():
                pass
            case EndQuorumEpochResponse():
                if isinstance(self.state, Resigned):
                    self.state.unacknowledged.discard(voter_id)
            case FetchResponse():
                self._handle_fetch_response(response, now)
            case FetchSnapshotResponse():
                return self._handle_fetch_snapshot_response(response, now)
        return True

    def _maybe_handle_common_response(self, request: Request, response: Response, now: Now) -> bool:
        """Adopt the epoch and the leader of a response (`maybeHandleCommonResponse`).

        Return whether the other fields must be handled, too.
        """
        error, epoch = response.error, response.leader_epoch
        if epoch < self.state.epoch or error is ErrorCode.unknown_leader_epoch:
            return False
        if epoch > self.state.epoch or error in _EPOCH_ERRORS:
            self._quorum.maybe_transition(epoch, response.leader_id, now)
            return False
        if response.leader_id != NO_LEADER:
            self._quorum.maybe_transition(epoch, response.leader_id, now)
        if error is ErrorCode.invalid_request:
            raise InconsistentMessageError(f"INVALID_REQUEST for {type(request).__name__}")
        return error is ErrorCode.none or isinstance(response, FetchSnapshotResponse)

    def _handle_vote_response(self, voter_id: int, response: VoteResponse, now: Now) -> None:
        state = self.state
        if isinstance(state, Prospective | Candidate):
            state.election.record_vote(voter_id, is_granted=response.vote_granted)
            self._maybe_transition_forward(now)
            if isinstance(state, Prospective) and state.election.is_vote_rejected:
                self._transition_after_election_lost(state, now)

    def _follower_state(self) -> Follower:
        if not isinstance(self.state, Follower):
            raise InconsistentMessageError(f"a fetch response for a node in state {self.state.role.value}")
        return self.state

    def _handle_fetch_response(self, response: FetchResponse, now: Now) -> None:
        """Truncate the log (KIP-595), or begin to fetch a snapshot (KIP-630), or append the records."""
        state, log = self._follower_state(), self.log
        if response.diverging is not None:
            if response.diverging.offset < self.high_watermark:
                raise InconsistentMessageError(
                    f"truncation to {response.diverging.offset}, below the high watermark {self.high_watermark}"
                )
            log.truncate_to_end_offset(response.diverging, now.wall_ms)
            self._trace(QuorumLogTruncated(log.end_offset))
        elif response.snapshot_id is not None:
            state.snapshot_id = response.snapshot_id
            state.snapshot.clear()
        else:
            log.append_as_follower(response.records, state.epoch, now.wall_ms)
            log.flush()
            self._update_high_watermark(response.high_watermark)
        self._reset_fetch_timeout(state, now)

    def _handle_fetch_snapshot_response(self, response: FetchSnapshotResponse, now: Now) -> bool:
        state = self._follower_state()
        if response.error in {ErrorCode.snapshot_not_found, ErrorCode.position_out_of_range}:
            state.snapshot_id = None  # the leader has deleted this snapshot; the next Fetch returns the id of another
        elif response.error is not ErrorCode.none or response.snapshot_id is None:
            return False
        elif (response.snapshot_id, response.position) != (state.snapshot_id, len(state.snapshot)):
            raise InconsistentMessageError(
                f"bytes from {response.position} of snapshot {response.snapshot_id}, which were not requested"
            )
        else:
            state.snapshot += response.data
            if len(state.snapshot) == response.size:
                self._install_snapshot(response.snapshot_id, bytes(state.snapshot), now)
                state.snapshot_id = None
                state.snapshot.clear()
        self._reset_fetch_timeout(state, now)
        return True

    def _install_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes, now: Now) -> None:
        """Replace the log with a snapshot that has been fetched completely."""
        self.log.install_snapshot(snapshot_id, data, now.wall_ms)
        self._trace(SnapshotFetched(snapshot_id.offset))
        self._effects.append(SnapshotInstalled(snapshot_id))
        self._update_high_watermark(snapshot_id.offset)

    def _reset_fetch_timeout(self, state: Follower, now: Now) -> None:
        state.has_fetched = True
        state.fetch_deadline_ms = self._quorum.fetch_deadline_ms(now)

    # Periodic actions and timeouts

    def poll(self, now: Now) -> None:
        """Perform the actions that are due in the current state.

        The caller calls this at `deadline_ms`. The methods for messages, appends and resignation call it, too.
        """
        self._expire_delayed_fetches(now)
        unresponsive = self.request_manager.expire(now.monotonic_ms)
        state = None
        while state is not self.state:
            state = self.state
            self._poll_current_state(state, unresponsive, now)
        deadlines = [self._state_deadline_ms(), *(fetch.deadline_ms for fetch in self._delayed_fetches)]
        if self.request_manager.deadline_ms is not None:
            deadlines.append(self.request_manager.deadline_ms)
        self.deadline_ms = deadline_ms if (deadline_ms := min(deadlines)) < NEVER_MS else None

    def _state_deadline_ms(self) -> int:
        state = self.state
        match state:
            case Leader():
                return state.deadline_ms
            case _ if self.is_shutting_down:
                return NEVER_MS
            case Follower():
                return state.fetch_deadline_ms
        return state.election_deadline_ms

    def _poll_current_state(self, state: State, unresponsive: tuple[int, ...], now: Now) -> None:
        match state:
            case Unattached():
                self._poll_unattached(state, now)
            case Prospective() | Candidate():
                self._poll_nominee(state, now)
            case Follower():
                self._poll_follower(state, unresponsive, now)
            case Leader():
                self._poll_leader(state, now)
            case Resigned():
                self._poll_resigned(state, now)

    def _poll_unattached(self, state: Unattached, now: Now) -> None:
        if self.is_shutting_down:
            return
        if now.monotonic_ms >= state.election_deadline_ms:
            self._transition_to_prospective(Trigger.ELECTION_TIMEOUT, now)
        else:
            self._maybe_send_fetch_to_any_voter(now)

    def _poll_nominee(self, state: Prospective | Candidate, now: Now) -> None:
        if now.monotonic_ms >= state.election_deadline_ms and not self.is_shutting_down:
            if isinstance(state, Prospective):
                self._transition_after_election_lost(state, now)
            else:
                self._transition_to_prospective(Trigger.ELECTION_TIMEOUT, now)
        elif not state.election.is_vote_rejected:
            is_pre_vote = isinstance(state, Prospective)
            for voter_id in state.election.unrecorded_voters:
                voter = self.voters.key_of(voter_id)
                request = VoteRequest(self.cluster_id, voter, self.local, state.epoch, self.log.end, is_pre_vote)
                self._maybe_send_request(voter_id, request, now)

    def _poll_follower(self, state: Follower, unresponsive: tuple[int, ...], now: Now) -> None:
        if self.is_shutting_down:
            return
        if now.monotonic_ms >= state.fetch_deadline_ms:
            if self._quorum.is_voter:
                self._transition_to_prospective(Trigger.FETCH_TIMEOUT, now)
            else:
                trigger = Trigger.OBSERVER_FETCH_TIMEOUT
                self._quorum.transition_to_unattached(trigger, state.epoch, state.leader_id, now)
        elif state.leader_id in unresponsive or self.request_manager.is_backing_off(state.leader_id):
            self._maybe_send_fetch_to_any_voter(now)
        elif not self.request_manager.has_any_inflight_request:
            self._maybe_send_request(state.leader_id, self._build_fetch_request(state), now)

    def _poll_leader(self, state: Leader, now: Now) -> None:
        if self.is_shutting_down or state.has_check_quorum_expired(now):
            self._quorum.transition_to_resigned(now)
        elif now.monotonic_ms >= state.begin_quorum_epoch_deadline_ms:
            for voter_id in state.non_fetching_voters(now):
                voter = self.voters.key_of(voter_id)
                request = BeginQuorumEpochRequest(self.cluster_id, voter, self.local.id, state.epoch)
                self._maybe_send_request(voter_id, request, now)
            state.begin_quorum_epoch_deadline_ms = now.monotonic_ms + self.config.begin_quorum_epoch_timeout_ms

    def _poll_resigned(self, state: Resigned, now: Now) -> None:
        if now.monotonic_ms >= state.election_deadline_ms and not self.is_shutting_down:
            if state.epoch < MAX_EPOCH:
                self._quorum.transition_to_unattached(Trigger.ELECTION_TIMEOUT, state.epoch + 1, NO_LEADER, now)
            else:
                state.election_deadline_ms = NEVER_MS  # there is no later epoch
            return
        request = EndQuorumEpochRequest(self.cluster_id, self.local.id, state.epoch, state.preferred_successors)
        for voter_id in sorted(state.unacknowledged):
            self._maybe_send_request(voter_id, request, now)

    def _maybe_send_request(self, voter_id: int, request: Request, now: Now) -> None:
        """Send a request to a voter, unless another request to it is in flight or its backoff has not expired."""
        if self.request_manager.is_ready(voter_id):
            request_id = self.request_manager.on_request_sent(voter_id, request, now.monotonic_ms)
            self._effects.append(SendRequest(request_id, voter_id, request))

    def _maybe_send_fetch_to_any_voter(self, now: Now) -> None:
        """Fetch from the next voter that is ready, beginning with a random one, to learn the leader."""
        others = self._quorum.other_voters
        if not others or self.request_manager.has_any_inflight_request:
            return
        first = self._random_below(len(others))
        for voter_id in others[first:] + others[:first]:
            if self.request_manager.is_ready(voter_id):
                self._maybe_send_request(voter_id, self._build_fetch_request(self.state), now)
                return

    def _build_fetch_request(self, state: State) -> Request:
        config = self.config
        if isinstance(state, Follower) and state.snapshot_id is not None:
            part = state.snapshot_id, len(state.snapshot), config.fetch_max_bytes
            return FetchSnapshotRequest(self.cluster_id, self.local, state.epoch, *part)
        end = self.log.end
        limits = config.fetch_max_wait_ms, config.fetch_max_bytes
        return FetchRequest(
            self.cluster_id, self.local, state.epoch, end.offset, end.epoch, *limits, self.high_watermark
        )
