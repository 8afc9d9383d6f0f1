"""States of a quorum node, and the transitions between them.

Follows: org.apache.kafka.raft.QuorumState (KIP-595, KIP-853, KIP-996).

    Unattached   knows the epoch, but no leader that responds; fetches from any voter to learn the leader.
    Prospective  requests pre-votes, to learn whether it could win an election. The epoch stays the same.
    Candidate    has begun an epoch, voted for itself, and requests votes.
    Leader       appends, responds to fetches, and advances the high watermark (`leader_state`).
    Resigned     led this epoch until check-quorum failed, a shutdown began, or it was restarted.
    Follower     knows the leader, and fetches from it.

Unattached and Prospective nodes may have voted in the epoch. Kafka 3 had a state Voted for this (KIP-996).

| from        | trigger                | to          | rule                                                            |
|-------------|------------------------|-------------|-----------------------------------------------------------------|
| any         | HIGHER_EPOCH           | Unattached  | a message has a newer epoch without a leader (Raft 5.1)         |
| any         | LEADER_FOUND           | Follower    | the leader of a newer epoch, or of this epoch if it was unknown |
| Unattached  | ELECTION_TIMEOUT       | Prospective | a voter; a pre-vote comes first (KIP-996)                       |
| Unattached  | ONLY_VOTER             | Prospective | at start, if there is no other voter                            |
| Prospective | MAJORITY_GRANTED       | Candidate   | the next epoch begins                                           |
| Prospective | ELECTION_LOST          | Unattached  | pre-vote rejected or timed out, and no leader is known          |
| Prospective | LEADER_FOUND           | Follower    | pre-vote rejected or timed out; follows the known leader again  |
| Candidate   | MAJORITY_GRANTED       | Leader      | the epoch stays the same                                        |
| Candidate   | ELECTION_TIMEOUT       | Prospective | a pre-vote comes before the next epoch (KIP-996)                |
| Follower    | FETCH_TIMEOUT          | Prospective | a voter; it keeps the leader's id                               |
| Follower    | OBSERVER_FETCH_TIMEOUT | Unattached  | an observer; it keeps the leader's id                           |
| Leader      | RESIGNATION            | Resigned    | check-quorum (KIP-595), `resign`, or the node shuts down        |
| Resigned    | ELECTION_TIMEOUT       | Unattached  | the next epoch begins, because this one has had its leader      |
| Resigned    | ONLY_VOTER             | Prospective | at start, if there is no other voter                            |

An *observer* is a node that is not a voter. It is always Unattached or Follower, and has no election timeout.

Rules of this file:
- `TRANSITIONS` is this table. Any other transition is a bug of this node, and raises `QuorumStateError`.
- A message that contradicts the state raises `InconsistentMessageError` and changes nothing. Kafka throws
  `IllegalStateException` instead, which ends the node.
- Each transition creates a new state object. Epochs never decrease, and a vote is kept for the rest of its epoch.
- Transitions and votes are durable before they have any effect.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.leader_state import LeaderState
from reference_broker.core.quorum.messages import MAX_EPOCH, NO_LEADER, InconsistentMessageError, OffsetAndEpoch
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet

NEVER_MS = 2**62
_EPOCH_JUMP_MAX = 2**30
_EPOCH_STEP_MAX = 2**10
"""Limits on the epoch of a message. Any epoch up to `_EPOCH_JUMP_MAX` is accepted. A higher epoch may exceed the epoch
of this node by at most `_EPOCH_STEP_MAX`, because this node may have missed that number of elections."""


class QuorumStateError(AssertionError):
    """A transition that is not in `TRANSITIONS`. It is a bug of this node, because no message can cause it."""


class QuorumRole(Enum):
    """Name of a state, as in Kafka."""

    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    RESIGNED = "Resigned"
    FOLLOWER = "Follower"


class Trigger(Enum):
    """Event that causes a transition."""

    HIGHER_EPOCH = "a newer epoch, its leader unknown"
    LEADER_FOUND = "a leader found"
    ELECTION_TIMEOUT = "election timeout"
    FETCH_TIMEOUT = "fetch timeout"
    OBSERVER_FETCH_TIMEOUT = "fetch timeout of an observer"
    MAJORITY_GRANTED = "votes of a majority"
    ELECTION_LOST = "election lost"
    RESIGNATION = "no majority fetches, or the node stops"
    ONLY_VOTER = "started as the only voter"


TRANSITIONS = {
    (QuorumRole.UNATTACHED, Trigger.HIGHER_EPOCH): QuorumRole.UNATTACHED,
    (QuorumRole.UNATTACHED, Trigger.LEADER_FOUND): QuorumRole.FOLLOWER,
    (QuorumRole.UNATTACHED, Trigger.ELECTION_TIMEOUT): QuorumRole.PROSPECTIVE,
    (QuorumRole.UNATTACHED, Trigger.ONLY_VOTER): QuorumRole.PROSPECTIVE,
    (QuorumRole.PROSPECTIVE, Trigger.HIGHER_EPOCH): QuorumRole.UNATTACHED,
    (QuorumRole.PROSPECTIVE, Trigger.LEADER_FOUND): QuorumRole.FOLLOWER,
    (QuorumRole.PROSPECTIVE, Trigger.ELECTION_LOST): QuorumRole.UNATTACHED,
    (QuorumRole.PROSPECTIVE, Trigger.MAJORITY_GRANTED): QuorumRole.CANDIDATE,
    (QuorumRole.CANDIDATE, Trigger.HIGHER_EPOCH): QuorumRole.UNATTACHED,
    (QuorumRole.CANDIDATE, Trigger.LEADER_FOUND): QuorumRole.FOLLOWER,
    (QuorumRole.CANDIDATE, Trigger.ELECTION_TIMEOUT): QuorumRole.PROSPECTIVE,
    (QuorumRole.CANDIDATE, Trigger.MAJORITY_GRANTED): QuorumRole.LEADER,
    (QuorumRole.LEADER, Trigger.HIGHER_EPOCH): QuorumRole.UNATTACHED,
    (QuorumRole.LEADER, Trigger.LEADER_FOUND): QuorumRole.FOLLOWER,
    (QuorumRole.LEADER, Trigger.RESIGNATION): QuorumRole.RESIGNED,
    (QuorumRole.RESIGNED, Trigger.HIGHER_EPOCH): QuorumRole.UNATTACHED,
    (QuorumRole.RESIGNED, Trigger.LEADER_FOUND): QuorumRole.FOLLOWER,
    (QuorumRole.RESIGNED, Trigger.ELECTION_TIMEOUT): QuorumRole.UNATTACHED,
    (QuorumRole.RESIGNED, Trigger.ONLY_VOTER): QuorumRole.PROSPECTIVE,
    (QuorumRole.FOLLOWER, Trigger.HIGHER_EPOCH): QuorumRole.UNATTACHED,
    (QuorumRole.FOLLOWER, Trigger.LEADER_FOUND): QuorumRole.FOLLOWER,
    (QuorumRole.FOLLOWER, Trigger.FETCH_TIMEOUT): QuorumRole.PROSPECTIVE,
    (QuorumRole.FOLLOWER, Trigger.OBSERVER_FETCH_TIMEOUT): QuorumRole.UNATTACHED,
}


def next_role(role: QuorumRole, trigger: Trigger) -> QuorumRole:
    """Return the role after a transition. Raises `QuorumStateError` if `TRANSITIONS` does not have the transition."""
    try:
        return TRANSITIONS[role, trigger]
    except KeyError:
        raise QuorumStateError(f"there is no transition from {role.value} by {trigger.value}") from None


class EpochElection:
    """Votes of one election, or of one pre-vote. This node has voted for itself."""

    def __init__(self, voters: VoterSet, local_id: int) -> None:
        self._voters = voters
        self._votes: dict[int, bool] = {local_id: True}

    def record_vote(self, voter_id: int, *, is_granted: bool) -> None:
        """Record a voter's response. It replaces an earlier response of the same voter."""
        self._votes[voter_id] = is_granted

    @property
    def granting_voters(self) -> tuple[int, ...]:
        """The voters that granted their vote, ascending."""
        return tuple(sorted(voter_id for voter_id, is_granted in self._votes.items() if is_granted))

    @property
    def unrecorded_voters(self) -> tuple[int, ...]:
        """The voters without a response."""
        return tuple(voter_id for voter_id in self._voters.ids if voter_id not in self._votes)

    @property
    def is_vote_granted(self) -> bool:
        """Whether a majority granted its vote."""
        return len(self.granting_voters) >= self._voters.majority

    @property
    def is_vote_rejected(self) -> bool:
        """Whether a majority is no longer possible."""
        return len(self.granting_voters) + len(self.unrecorded_voters) < self._voters.majority


# The states: see the top of this file


@dataclass(slots=True)
class Unattached:
    """A node without a leader that responds. `leader_id` is set if an observer's leader stopped responding."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    election_deadline_ms: int
    role = QuorumRole.UNATTACHED


@dataclass(slots=True)
class Prospective:
    """A voter in a pre-vote. `leader_id` is set if the leader of the epoch stopped responding."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    election_deadline_ms: int
    election: EpochElection
    role = QuorumRole.PROSPECTIVE


@dataclass(slots=True)
class Candidate:
    """A voter in an election. It has voted for itself."""

    epoch: int
    voted: ReplicaKey
    election_deadline_ms: int
    election: EpochElection
    leader_id: int = NO_LEADER
    role = QuorumRole.CANDIDATE


@dataclass(slots=True)
class Follower:
    """A node with a leader.

    :param has_fetched: whether the leader has responded to a fetch. Before that, this node may grant pre-votes.
    :param snapshot_id: id of the snapshot that is being fetched; null if records are fetched.
    :param snapshot: the bytes of this snapshot that have been fetched.
    """

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    fetch_deadline_ms: int
    has_fetched: bool = False
    snapshot_id: OffsetAndEpoch | None = None
    snapshot: bytearray = field(default_factory=bytearray)
    role = QuorumRole.FOLLOWER


class Leader(LeaderState):
    """Leader of its epoch, with the state of each replica."""

    role = QuorumRole.LEADER


@dataclass(slots=True)
class Resigned:
    """A former leader in the epoch that it led.

    :param preferred_successors: empty after a restart.
    :param unacknowledged: voters that have not responded to EndQuorumEpoch.
    :param unreachable: voters to which a request failed.
    """

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    election_deadline_ms: int
    preferred_successors: tuple[ReplicaKey, ...]
    unacknowledged: set[int]
    unreachable: set[int] = field(default_factory=set)
    role = QuorumRole.RESIGNED


State = Unattached | Prospective | Candidate | Leader | Resigned | Follower


class QuorumState:
    """State of one node, durable in the file `quorum-state`.

    :param random_below: returns a random number below its argument.
    :param on_transition: called after each transition; the new state is then durable.
    """

    def __init__(
        self,
        local: ReplicaKey,
        voters: VoterSet,
        config: QuorumConfig,
        store: ElectionStateStore,
        *,
        random_below: Callable[[int], int],
        on_transition: Callable[[], None],
    ) -> None:
        self.local = local
        self.voters = voters
        self.is_voter = voters.contains(local)
        self.other_voters = voters.others(local.id)
        self._config = config
        self._store = store
        self._random_below = random_below
        self._on_transition = on_transition
        self._persisted: ElectionState | None = None
        self.state: State = Unattached(0, NO_LEADER, None, NEVER_MS)

    def initialize(self, last_log_epoch: int, now: Now) -> None:
        """Restore the state from the disk. If the log has a newer epoch, start in that epoch without a vote."""
        election = self._store.read()
        if election.epoch < last_log_epoch:
            election = ElectionState(last_log_epoch)
        self.state = self._initial_state(election, now)
        self._persist()
        self._on_transition()

    def _initial_state(self, election: ElectionState, now: Now) -> State:
        """Return the first state of a node.

        | stored leader or vote            | first state                                                            |
        |----------------------------------|------------------------------------------------------------------------|
        | this node as the leader          | Resigned: it may have lost appended records, and must not append       |
        |                                  | others with the same offset and epoch                                  |
        | another leader                   | Follower                                                               |
        | its vote for itself              | Candidate                                                              |
        | no leader, or a vote for another | Unattached                                                             |
        """
        epoch, leader_id, voted = election.epoch, election.leader_id, election.voted
        if leader_id == self.local.id:
            return Resigned(epoch, leader_id, voted, self._election_deadline_ms(now), (), set(self.other_voters))
        if self.voters.get(leader_id) is not None:
            return Follower(epoch, leader_id, voted, self.fetch_deadline_ms(now))
        if voted == self.local and self.is_voter:
            return Candidate(epoch, self.local, self._election_deadline_ms(now), self._new_election())
        deadline_ms = self._first_election_deadline_ms(now) if epoch == 0 else self._election_deadline_ms(now)
        return Unattached(epoch, leader_id, voted, deadline_ms)

    @property
    def persistent(self) -> ElectionState:
        """The durable part of the state."""
        return ElectionState(self.state.epoch, self.state.leader_id, self.state.voted)

    @property
    def is_only_voter(self) -> bool:
        """Whether this node is the only voter of the quorum."""
        return self.is_voter and not self.other_voters

    # Transitions

    def maybe_transition(self, epoch: int, leader_id: int, now: Now) -> None:
        """Adopt the epoch and the leader of a message, if they are newer. A leader that is not a voter is ignored.

        Raises `InconsistentMessageError`; the state is then unchanged.
        """
        if self.voters.get(leader_id) is None:
            leader_id = NO_LEADER
        self._check_epoch_is_reachable(epoch)
        self._check_consistent_leader(epoch, leader_id)
        is_newer = epoch > self.state.epoch
        # An observer whose leader does not respond is Unattached too, although it has a leader id.
        lacks_leader = isinstance(self.state, Unattached) or self.state.leader_id == NO_LEADER
        if is_newer and leader_id == NO_LEADER:
            self.transition_to_unattached(Trigger.HIGHER_EPOCH, epoch, NO_LEADER, now)
        elif leader_id not in {NO_LEADER, self.local.id} and (is_newer or (epoch == self.state.epoch and lacks_leader)):
            self.transition_to_follower(epoch, leader_id, now)

    def _check_epoch_is_reachable(self, epoch: int) -> None:
        """Reject an epoch that elections cannot have reached, so that one message cannot use up all epochs."""
        if epoch > min(MAX_EPOCH, max(_EPOCH_JUMP_MAX, self.state.epoch + _EPOCH_STEP_MAX)):
            raise InconsistentMessageError(f"epoch {epoch} is too far above epoch {self.state.epoch} of this node")

    def _check_consistent_leader(self, epoch: int, leader_id: int) -> None:
        """Check the leader in a message. Raises `InconsistentMessageError`.

        It must be the known leader of the epoch, if there is one. It may be this node only if this node leads the
        epoch. These are the checks of Kafka's `hasConsistentLeader` and `transitionToFollower`.
        """
        state = self.state
        if epoch == state.epoch and NO_LEADER not in {leader_id, state.leader_id} and leader_id != state.leader_id:
            raise InconsistentMessageError(f"the leader of epoch {epoch} is {state.leader_id}, not {leader_id}")
        if leader_id == self.local.id and (
            epoch > state.epoch or (epoch == state.epoch and state.leader_id != leader_id)
        ):
            raise InconsistentMessageError(f"this node, {leader_id}, does not lead epoch {epoch}")

    def transition_to_unattached(self, trigger: Trigger, epoch: int, leader_id: int, now: Now) -> None:
        """Become Unattached in an epoch. An election timeout continues, except that of a rejected pre-vote."""
        state = self.state
        match state:
            case Leader() | Follower():
                deadline_ms = self._election_deadline_ms(now)
            case Prospective() if state.election.is_vote_rejected:
                deadline_ms = self._election_deadline_ms(now)
            case _:
                deadline_ms = state.election_deadline_ms
        self._transition(trigger, Unattached(epoch, leader_id, self._voted_in(epoch), deadline_ms))

    def transition_to_prospective(self, trigger: Trigger, now: Now) -> None:
        """Begin a pre-vote in this epoch."""
        state = self.state
        deadline_ms = self._election_deadline_ms(now)
        prospective = Prospective(state.epoch, state.leader_id, state.voted, deadline_ms, self._new_election())
        self._transition(trigger, prospective)

    def transition_to_candidate(self, now: Now) -> None:
        """Begin the next epoch, with a vote for this node."""
        epoch = self.state.epoch + 1
        assert epoch <= MAX_EPOCH
        candidate = Candidate(epoch, self.local, self._election_deadline_ms(now), self._new_election())
        self._transition(Trigger.MAJORITY_GRANTED, candidate)

    def transition_to_leader(self, epoch_start_offset: int, now: Now) -> Leader:
        """Become the leader of the current epoch, which starts at the log end offset."""
        leader = Leader(
            self.local,
            epoch=self.state.epoch,
            epoch_start_offset=epoch_start_offset,
            voters=self.voters,
            config=self._config,
            now=now,
        )
        self._transition(Trigger.MAJORITY_GRANTED, leader)
        return leader

    def transition_to_follower(self, epoch: int, leader_id: int, now: Now) -> None:
        """Become a follower of the leader of an epoch."""
        follower = Follower(epoch, leader_id, self._voted_in(epoch), self.fetch_deadline_ms(now))
        self._transition(Trigger.LEADER_FOUND, follower)

    def transition_to_resigned(self, now: Now) -> None:
        """Stop leading this epoch."""
        state = self.state
        assert isinstance(state, Leader)
        deadline_ms = self._election_deadline_ms(now)
        successors = state.non_leader_voters_by_descending_fetch_offset()
        others = set(self.other_voters)
        resigned = Resigned(state.epoch, state.leader_id, state.voted, deadline_ms, successors, others)
        self._transition(Trigger.RESIGNATION, resigned)

    def _transition(self, trigger: Trigger, state: State) -> None:
        role = next_role(self.state.role, trigger)
        assert role is state.role
        assert role in {QuorumRole.UNATTACHED, QuorumRole.FOLLOWER} or self.is_voter
        self.state = state
        self._persist()
        self._on_transition()

    def _persist(self) -> None:
        election = self.persistent
        if election != self._persisted:
            self._store.write(election)
            self._persisted = election

    # Votes

    def can_grant_vote(self, candidate: ReplicaKey, *, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
        """Whether this node votes for a candidate in its current epoch.

        A pre-vote is never granted to a candidate whose log is behind.

        | state                   | pre-vote                                | vote                                    |
        |-------------------------|-----------------------------------------|-----------------------------------------|
        | Unattached, Prospective | yes                                     | after a vote: only for that candidate   |
        |                         |                                         | else, if no leader is known: for any    |
        |                         |                                         | candidate whose log is not behind       |
        | Follower                | until its leader has responded to Fetch | no                                      |
        | Candidate, Resigned     | yes                                     | no                                      |
        | Leader                  | no                                      | no                                      |
        """
        state = self.state
        match state:
            case Leader():
                return False
            case Follower():
                return is_pre_vote and is_log_up_to_date and not state.has_fetched
            case Candidate() | Resigned():
                return is_pre_vote and is_log_up_to_date
            case _ if is_pre_vote:
                return is_log_up_to_date
            case _ if state.voted is not None:
                return state.voted.matches(candidate)
        return state.leader_id == NO_LEADER and is_log_up_to_date

    def add_voted_state(self, candidate: ReplicaKey, now: Now) -> None:
        """Store the vote in this epoch durably. Restart the election timeout, and a pre-vote in progress.

        If this node has already voted in the epoch, nothing changes. (Kafka: `unattachedAddVotedState` and
        `prospectiveAddVotedState`.)
        """
        state = self.state
        if isinstance(state, Unattached | Prospective) and state.voted is None:
            state.voted = candidate
            state.election_deadline_ms = self._election_deadline_ms(now)
            if isinstance(state, Prospective):
                state.election = self._new_election()
            self._persist()

    def _voted_in(self, epoch: int) -> ReplicaKey | None:
        return self.state.voted if epoch == self.state.epoch else None

    def _new_election(self) -> EpochElection:
        return EpochElection(self.voters, self.local.id)

    # Timeouts, as deadlines of the monotonic clock

    def fetch_deadline_ms(self, now: Now) -> int:
        """Return the end of a fetch timeout that begins now."""
        return now.monotonic_ms + self._config.fetch_timeout_ms

    def _election_deadline_ms(self, now: Now) -> int:
        """Return the end of an election timeout that begins now. It is random, so that elections do not collide."""
        timeout_ms = self._config.election_timeout_ms
        return now.monotonic_ms + timeout_ms + self._random_below(timeout_ms) if self.is_voter else NEVER_MS

    def _first_election_deadline_ms(self, now: Now) -> int:
        """Return the end of the first election timeout of a node in epoch 0 (`QuorumConfig.first_election_max_ms`)."""
        first_max_ms = self._config.first_election_max_ms
        if first_max_ms is None or not self.is_voter:
            return self._election_deadline_ms(now)
        return now.monotonic_ms + self._random_below(first_max_ms)
