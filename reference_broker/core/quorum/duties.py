"""What a node does of itself in each state: ask, and lose patience. Kafka's `KafkaRaftClient.poll`.

| state       | asks                                                       | until                                     |
|-------------|------------------------------------------------------------|-------------------------------------------|
| Unattached  | one voter after the other for the leader, by Fetch         | the election timeout; observers: for ever |
| Prospective | all voters for a pre-vote                                  | the election timeout                      |
| Candidate   | all voters for a vote                                      | the election timeout                      |
| Follower    | its leader for records, by Fetch or FetchSnapshot; another | no fetch answered for the fetch timeout   |
|             | voter while the leader is silent                           |                                           |
| Leader      | those that do not fetch to do so, by BeginQuorumEpoch      | no majority has fetched (check-quorum)    |
| Resigned    | all voters to elect another leader, by EndQuorumEpoch      | the election timeout                      |

A node that stops begins nothing: it finishes an election under way, and waits for another leader.
"""

from reference_broker.core.clock import Now
from reference_broker.core.quorum.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from reference_broker.core.quorum.quorum_state import QuorumState
from reference_broker.core.quorum.states import (
    NEVER_MS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Trigger,
    Unattached,
)


class Duties:
    """The active side of one node."""

    def __init__(self, node: QuorumState) -> None:
        self._node = node
        self.connections = node.connections

    def do(self, now: Now) -> None:
        """All that is to be done now, until there is nothing more."""
        silent = self.connections.expire(now.monotonic_ms)
        state = None
        while state is not self._node.state:
            state = self._node.state
            match state:
                case Unattached():
                    self._act_unattached(state, now)
                case Prospective() | Candidate():
                    self._act_nominee(state, now)
                case Follower():
                    self._act_follower(state, silent, now)
                case Leader():
                    self._act_leader(state, now)
                case Resigned():
                    self._act_resigned(state, now)

    @property
    def deadline_ms(self) -> int | None:
        """When there is something to do next."""
        state_ms, connections_ms = self._state_deadline_ms(), self.connections.deadline_ms
        deadline_ms = state_ms if connections_ms is None else min(state_ms, connections_ms)
        return deadline_ms if deadline_ms < NEVER_MS else None

    def _state_deadline_ms(self) -> int:
        state = self._node.state
        match state:
            case Leader():
                return state.leadership.deadline_ms
            case _ if self._node.is_stopping:
                return NEVER_MS
            case Follower():
                return state.fetch_deadline_ms
        return state.election_deadline_ms

    def _is_due(self, deadline_ms: int, now: Now) -> bool:
        return not self._node.is_stopping and now.monotonic_ms >= deadline_ms

    def _act_unattached(self, state: Unattached, now: Now) -> None:
        if self._is_due(state.election_deadline_ms, now):
            self._node.become_prospective(Trigger.ELECTION_TIMEOUT, now)
        elif not self._node.is_stopping:
            self._fetch_from_any(now)

    def _act_nominee(self, state: Prospective | Candidate, now: Now) -> None:
        node = self._node
        if self._is_due(state.election_deadline_ms, now):
            if isinstance(state, Prospective):
                node.lose_election(state, now)
            else:
                node.become_prospective(Trigger.ELECTION_TIMEOUT, now)
        elif not state.ballot.is_lost:
            pre_vote = isinstance(state, Prospective)
            for voter_id in state.ballot.unrecorded:
                voter = node.voters.key_of(voter_id)
                request = VoteRequest(node.cluster_id, voter, node.local, state.epoch, node.log.end, pre_vote)
                self._send(voter_id, request, now)

    def _act_follower(self, state: Follower, silent: tuple[int, ...], now: Now) -> None:
        if self._node.is_stopping:
            return
        if now.monotonic_ms >= state.fetch_deadline_ms:
            if self._node.is_voter:
                self._node.become_prospective(Trigger.FETCH_TIMEOUT, now)
            else:
                self._node.become_unattached(Trigger.OBSERVER_FETCH_TIMEOUT, state.epoch, state.leader_id, now)
        elif state.leader_id in silent or self.connections.is_backing_off(state.leader_id):
            self._fetch_from_any(now)
        elif not self.connections.is_any_in_flight:
            self._send(state.leader_id, self._fetch_request(state), now)

    def _act_leader(self, state: Leader, now: Now) -> None:
        node, leadership = self._node, state.leadership
        if node.is_stopping or leadership.has_lost_quorum(now):
            node.become_resigned(now)
        elif now.monotonic_ms >= leadership.begin_quorum_epoch_deadline_ms:
            for voter_id in leadership.silent_voters(now):
                voter = node.voters.key_of(voter_id)
                request = BeginQuorumEpochRequest(node.cluster_id, voter, node.local.id, state.epoch)
                self._send(voter_id, request, now)
            leadership.begin_quorum_epoch_deadline_ms = now.monotonic_ms + node.config.begin_quorum_epoch_timeout_ms

    def _act_resigned(self, state: Resigned, now: Now) -> None:
        node = self._node
        if self._is_due(state.election_deadline_ms, now):
            node.leave_epoch(state, now)
            return
        request = EndQuorumEpochRequest(node.cluster_id, node.local.id, state.epoch, state.preferred_successors)
        for voter_id in sorted(state.unacknowledged):
            self._send(voter_id, request, now)

    # Asking

    def _send(self, voter_id: int, request: Request, now: Now) -> None:
        if self.connections.is_ready(voter_id):
            request_id = self.connections.begin(voter_id, request, now.monotonic_ms)
            self._node.send(request_id, voter_id, request)

    def _fetch_from_any(self, now: Now) -> None:
        """Ask one voter after the other, from a random one on, to learn who leads."""
        others = self._node.voters.others(self._node.local.id)
        if not others or self.connections.is_any_in_flight:
            return
        first = self._node.random_below(len(others))
        for voter_id in others[first:] + others[:first]:
            if self.connections.is_ready(voter_id):
                self._send(voter_id, self._fetch_request(self._node.state), now)
                return

    def _fetch_request(self, state: State) -> Request:
        node, config = self._node, self._node.config
        if isinstance(state, Follower) and state.snapshot_id is not None:
            piece = state.snapshot_id, len(state.snapshot), config.fetch_max_bytes
            return FetchSnapshotRequest(node.cluster_id, node.local, state.epoch, *piece)
        where = node.log.end.offset, node.log.end.epoch
        limits = config.fetch_max_wait_ms, config.fetch_max_bytes
        return FetchRequest(node.cluster_id, node.local, state.epoch, *where, *limits, node.high_watermark)
