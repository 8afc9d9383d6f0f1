"""State of a node of the quorum and its transitions: Kafka's `QuorumState`, with the log that they rest upon.

Rules of this file:
- A transition is written to the disk before anything that follows from it: the vote before the response that grants it.
- A node that contradicts itself must not continue (`QuorumStateError`). A message that contradicts the node is rejected
  (`InconsistentMessageError`): no peer can end a node. Both are exceptions in Kafka.
- What `node` does with requests and responses in flight when the state or the log changes, it adds by two hooks.
"""

from collections.abc import Callable, Sequence
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.disk import Disk
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.connections import Connections
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
from reference_broker.core.quorum.first_state import first_state
from reference_broker.core.quorum.leadership import Leadership
from reference_broker.core.quorum.messages import (
    MAX_EPOCH,
    NO_LEADER,
    UNKNOWN_HIGH_WATERMARK,
    InconsistentMessageError,
    OffsetAndEpoch,
    Request,
    Response,
)
from reference_broker.core.quorum.patience import Patience
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY, QuorumLog
from reference_broker.core.quorum.states import (
    NEVER_MS,
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    State,
    Trigger,
    Unattached,
    next_role,
)
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet
from reference_broker.core.tracer import QuorumStateChanged, SnapshotFetched, Tracer, no_tracer

_EPOCH_JUMP_MAX = 2**30
_EPOCH_STEP_MAX = 2**10
"""How far a peer's message may advance the epoch: freely in the first half of all epochs, by the number of elections
that a node may have missed in the second."""


class QuorumState:
    """State, log and effects of one node, as its disk has them after the last stop or crash."""

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
        self.high_watermark = UNKNOWN_HIGH_WATERMARK
        self._leader_high_watermark = UNKNOWN_HIGH_WATERMARK
        self.is_voter = voters.contains(local)
        self.log = QuorumLog(disk, config.log, now.wall_ms, clean=clean)
        self._store = ElectionStateStore(disk, QUORUM_LOG_DIRECTORY)
        self.trace = trace
        self._effects: list[Effect] = []
        self.connections = Connections(config)
        self.is_stopping = False
        self.rejected_response: ResponseRejected | None = None
        self.random_below = random_below
        self.patience = Patience(config, random_below, is_voter=self.is_voter)
        self.state: State = self._initial_state(now)
        self._persisted: ElectionState | None = None

    # Hooks

    def on_transition(self) -> None:
        """Hook: the state has changed, and is on the disk."""

    def on_append(self, now: Now) -> None:
        """Hook: the leader has appended, and its high watermark may have advanced."""

    # What it is

    @property
    def election(self) -> ElectionState:
        """What of the state has to outlive a crash."""
        return ElectionState(self.state.epoch, self.state.leader_id, self.state.voted)

    @property
    def is_caught_up(self) -> bool:
        """Whether the log reaches the latest high watermark that the leader has reported."""
        return self.high_watermark == self._leader_high_watermark != UNKNOWN_HIGH_WATERMARK

    @property
    def has_effects(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._effects)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What was decided and is not taken yet."""
        return tuple(self._effects)

    def take_effects(self) -> list[Effect]:
        """What was decided since the last time, in order."""
        effects, self._effects = self._effects, []
        return effects

    def respond(self, caller: Any, response: Response) -> None:
        """Send a response."""
        self._effects.append(SendResponse(caller, response))

    def send(self, request_id: int, voter_id: int, request: Request) -> None:
        """Send a request."""
        self._effects.append(SendRequest(request_id, voter_id, request))

    # Transitions

    def _initial_state(self, now: Now) -> State:
        election = self._store.read()
        if election.epoch < self.log.last_epoch:
            election = ElectionState(self.log.last_epoch)
        return first_state(election, self.local, self.voters, self.patience, now)

    def _ballot(self) -> Ballot:
        return Ballot(self.voters, self.local.id)

    def see_epoch(self, epoch: int, leader_id: int, now: Now) -> None:
        """Take over an epoch, and its leader where that is known and a voter. Kafka's `maybeTransition`.

        Raises `InconsistentMessageError`, and changes nothing then.
        """
        state = self.state
        if self.voters.get(leader_id) is None:
            leader_id = NO_LEADER
        self._check_epoch_is_reachable(epoch)
        self._check_leader_is_consistent(epoch, leader_id)
        if epoch > state.epoch and leader_id == NO_LEADER:
            self.become_unattached(Trigger.HIGHER_EPOCH, epoch, NO_LEADER, now)
        elif leader_id not in {NO_LEADER, self.local.id} and (epoch > state.epoch or self._lacks_leader_of(epoch)):
            self._become_follower(epoch, leader_id, now)

    def _check_epoch_is_reachable(self, epoch: int) -> None:
        """Keep one message from using up the epochs: an epoch in the last half is reached by elections, not at once."""
        if epoch > min(MAX_EPOCH, max(_EPOCH_JUMP_MAX, self.state.epoch + _EPOCH_STEP_MAX)):
            raise InconsistentMessageError(f"no elections lead from epoch {self.state.epoch} to epoch {epoch}")

    def _check_leader_is_consistent(self, epoch: int, leader_id: int) -> None:
        """Kafka's `hasConsistentLeader`: one leader per epoch, and this node only where it knows that it leads."""
        state = self.state
        if epoch == state.epoch and NO_LEADER not in {leader_id, state.leader_id} and leader_id != state.leader_id:
            raise InconsistentMessageError(f"the leader of epoch {epoch} is {state.leader_id}, not {leader_id}")
        if leader_id == self.local.id and epoch >= state.epoch and state.leader_id != leader_id:
            raise InconsistentMessageError(f"node {leader_id} itself does not lead epoch {epoch}")

    def _lacks_leader_of(self, epoch: int) -> bool:
        """Also an observer that knows its leader's id, but has heard nothing from it for long."""
        is_waiting = isinstance(self.state, Unattached) or self.state.leader_id == NO_LEADER
        return epoch == self.state.epoch and is_waiting

    def become_unattached(self, trigger: Trigger, epoch: int, leader_id: int, now: Now) -> None:
        """Wait, and look for a leader."""
        state = self.state
        voted = state.voted if epoch == state.epoch else None
        deadline_ms = self.patience.remaining_election_deadline_ms(state, now)
        self._transition(trigger, Unattached(epoch, leader_id, voted, deadline_ms))

    def become_prospective(self, trigger: Trigger, now: Now) -> None:
        """Send pre-votes: an election begins only if it can be won."""
        state = self.state
        deadline_ms = self.patience.election_deadline_ms(now)
        prospective = Prospective(state.epoch, state.leader_id, state.voted, deadline_ms, self._ballot())
        self._transition(trigger, prospective)
        self.count_votes(now)

    def _become_candidate(self, now: Now) -> None:
        epoch = self.state.epoch + 1
        assert epoch <= MAX_EPOCH
        candidate = Candidate(epoch, self.local, self.patience.election_deadline_ms(now), self._ballot())
        self._transition(Trigger.MAJORITY_GRANTED, candidate)
        self.count_votes(now)

    def _become_leader(self, state: Candidate, now: Now) -> None:
        start = self.log.end_offset
        leadership = Leadership(
            self.local,
            epoch=state.epoch,
            epoch_start_offset=start,
            voters=self.voters,
            config=self.config,
            now=now,
        )
        leader = Leader(state.epoch, self.local.id, None, leadership)
        self._transition(Trigger.MAJORITY_GRANTED, leader)
        granting = state.ballot.granting
        batch = leader_change_batch(self.local.id, self.voters.ids, granting, now.wall_ms)
        self._append_as_leader(leader, [batch], now)

    def _become_follower(self, epoch: int, leader_id: int, now: Now) -> None:
        voted = self.state.voted if epoch == self.state.epoch else None
        deadline_ms = self.patience.fetch_deadline_ms(now)
        self._transition(Trigger.LEADER_FOUND, Follower(epoch, leader_id, voted, deadline_ms))

    def leave_epoch(self, state: Resigned, now: Now) -> None:
        """Wait for the leader of the next epoch. In the last one a leader that resigned could only vote twice."""
        if state.epoch == MAX_EPOCH:
            state.election_deadline_ms = NEVER_MS
        else:
            self.become_unattached(Trigger.ELECTION_TIMEOUT, state.epoch + 1, NO_LEADER, now)

    def become_resigned(self, now: Now) -> None:
        """Lead no more."""
        state = self.state
        assert isinstance(state, Leader)
        deadline_ms = self.patience.election_deadline_ms(now)
        successors, others = state.leadership.successors(), set(self.voters.others(self.local.id))
        resigned = Resigned(state.epoch, state.leader_id, state.voted, deadline_ms, successors, others)
        self._transition(Trigger.RESIGNATION, resigned)

    def count_votes(self, now: Now) -> None:
        """Go on if the election is won."""
        match self.state:
            case Prospective() if self.state.ballot.is_won and self.state.epoch < MAX_EPOCH:
                self._become_candidate(now)
            case Candidate() if self.state.ballot.is_won:
                self._become_leader(self.state, now)

    def lose_election(self, state: Prospective, now: Now) -> None:
        """No majority would vote for this node: back to the leader it knew, or to waiting."""
        if self.voters.get(state.leader_id) is not None and state.leader_id != self.local.id:
            self._become_follower(state.epoch, state.leader_id, now)
        else:
            self.become_unattached(Trigger.ELECTION_LOST, state.epoch, state.leader_id, now)

    def vote_for(self, candidate: ReplicaKey, now: Now) -> None:
        """Give the vote of this epoch; the candidate gets the time that an election takes."""
        state = self.state
        if isinstance(state, Unattached | Prospective) and state.voted is None:
            state.voted = candidate
            state.election_deadline_ms = self.patience.election_deadline_ms(now)
            if isinstance(state, Prospective):
                state.ballot = self._ballot()
            self._persist()

    def _transition(self, trigger: Trigger, state: State) -> None:
        role = next_role(self.state.role, trigger)
        assert role is state.role
        assert role in {Role.UNATTACHED, Role.FOLLOWER} or self.is_voter
        self.state = state
        self._after_transition()

    def _after_transition(self) -> None:
        before = self._persisted
        self._persist()
        state = self.state
        self.trace(QuorumStateChanged(state.role, state.epoch, state.leader_id))
        self.connections.reset()
        self.on_transition()
        if before is None or (before.epoch, before.leader_id) != (state.epoch, state.leader_id):
            start = state.leadership.epoch_start_offset if isinstance(state, Leader) else None
            self._effects.append(LeaderChanged(state.leader_id, state.epoch, start))

    def _persist(self) -> None:
        election = self.election
        if election != self._persisted:
            self._store.write(election)
            self._persisted = election

    # The log

    def _append_as_leader(self, state: Leader, batches: Sequence[bytes], now: Now) -> None:
        for batch in batches:
            self.log.append_as_leader(batch, state.epoch, now.wall_ms)
        self.log.flush()
        has_moved = state.leadership.note_local_end(self.log.end_offset)
        if has_moved:
            self.advance_high_watermark(state.leadership.high_watermark)
        self.on_append(now)

    def advance_high_watermark(self, offset: int) -> None:
        """Records are committed as far as this log has them."""
        self._leader_high_watermark = max(offset, self._leader_high_watermark)
        offset = min(offset, self.log.end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._effects.append(HighWatermarkAdvanced(offset))

    def install_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes, now: Now) -> None:
        """Begin the log again at the end of a snapshot that the leader has sent."""
        self.log.install_snapshot(snapshot_id, data, now.wall_ms)
        self.trace(SnapshotFetched(snapshot_id.offset))
        self._effects.append(SnapshotInstalled(snapshot_id))
        self.advance_high_watermark(snapshot_id.offset)
