"""The states of a quorum node, and how it gets from one to another: the rules of KIP-595 with pre-vote (KIP-996).

    Unattached   knows the epoch, not the leader; asks the voters for it. It may have voted in this epoch: what was the
                 state Voted is since Kafka 4.0 a vote that Unattached and Prospective keep.
    Prospective  would like an election, and asks if it could win one. Nothing is persisted, no epoch is spent.
    Candidate    has begun an epoch, voted for itself, and asks for votes.
    Leader       appends; answers fetches; moves the high watermark; resigns if no majority fetches (check-quorum).
    Resigned     led this epoch and does so no more: after check-quorum, while stopping, or after a restart.
    Follower     knows the leader and fetches from it.

An *observer*, which is no voter, is only ever Unattached or Follower, and has no election timeout.

Rules of this file:
- `TRANSITIONS` is complete. What is not in it does not happen: `next_role` refuses.
- Every transition begins a new state value; what a state knows ends with it. Epochs never fall, and a vote is kept as
  long as its epoch lasts.
- The table says nothing of epochs. An election won as Prospective and the end of Resigned begin the next epoch. A
  leader is found in a newer epoch, or in this one by those that do not know it.
"""

from dataclasses import dataclass, field
from enum import Enum

from reference_broker.core.quorum.leadership import Leadership
from reference_broker.core.quorum.messages import NO_LEADER, OffsetAndEpoch
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet

NEVER_MS = 2**62


class QuorumStateError(AssertionError):
    """A transition that the protocol rules out: a defect of this node, for a message cannot cause it."""


class Role(Enum):
    """The states, by Kafka's names."""

    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    RESIGNED = "Resigned"
    FOLLOWER = "Follower"


class Trigger(Enum):
    """Why a node changes its state."""

    HIGHER_EPOCH = "a newer epoch, its leader unknown"
    LEADER_FOUND = "a leader found"
    ELECTION_TIMEOUT = "election timeout"
    FETCH_TIMEOUT = "fetch timeout"
    OBSERVER_FETCH_TIMEOUT = "fetch timeout of an observer"
    MAJORITY_GRANTED = "votes of a majority"
    ELECTION_LOST = "no majority can be had"
    RESIGNATION = "no majority fetches, or the node stops"
    ONLY_VOTER = "started as the only voter"


TRANSITIONS = {
    (Role.UNATTACHED, Trigger.HIGHER_EPOCH): Role.UNATTACHED,
    (Role.UNATTACHED, Trigger.LEADER_FOUND): Role.FOLLOWER,
    (Role.UNATTACHED, Trigger.ELECTION_TIMEOUT): Role.PROSPECTIVE,
    (Role.UNATTACHED, Trigger.ONLY_VOTER): Role.PROSPECTIVE,
    (Role.PROSPECTIVE, Trigger.HIGHER_EPOCH): Role.UNATTACHED,
    (Role.PROSPECTIVE, Trigger.LEADER_FOUND): Role.FOLLOWER,
    (Role.PROSPECTIVE, Trigger.ELECTION_LOST): Role.UNATTACHED,
    (Role.PROSPECTIVE, Trigger.MAJORITY_GRANTED): Role.CANDIDATE,
    (Role.CANDIDATE, Trigger.HIGHER_EPOCH): Role.UNATTACHED,
    (Role.CANDIDATE, Trigger.LEADER_FOUND): Role.FOLLOWER,
    (Role.CANDIDATE, Trigger.ELECTION_TIMEOUT): Role.PROSPECTIVE,
    (Role.CANDIDATE, Trigger.MAJORITY_GRANTED): Role.LEADER,
    (Role.LEADER, Trigger.HIGHER_EPOCH): Role.UNATTACHED,
    (Role.LEADER, Trigger.LEADER_FOUND): Role.FOLLOWER,
    (Role.LEADER, Trigger.RESIGNATION): Role.RESIGNED,
    (Role.RESIGNED, Trigger.HIGHER_EPOCH): Role.UNATTACHED,
    (Role.RESIGNED, Trigger.LEADER_FOUND): Role.FOLLOWER,
    (Role.RESIGNED, Trigger.ELECTION_TIMEOUT): Role.UNATTACHED,
    (Role.RESIGNED, Trigger.ONLY_VOTER): Role.PROSPECTIVE,
    (Role.FOLLOWER, Trigger.HIGHER_EPOCH): Role.UNATTACHED,
    (Role.FOLLOWER, Trigger.LEADER_FOUND): Role.FOLLOWER,
    (Role.FOLLOWER, Trigger.FETCH_TIMEOUT): Role.PROSPECTIVE,
    (Role.FOLLOWER, Trigger.OBSERVER_FETCH_TIMEOUT): Role.UNATTACHED,
}


def next_role(role: Role, trigger: Trigger) -> Role:
    """The state that follows. Raises `QuorumStateError` if none does."""
    try:
        return TRANSITIONS[role, trigger]
    except KeyError:
        raise QuorumStateError(f"{trigger.value} does not happen to a node that is {role.value}") from None


class Ballot:
    """The votes of one election; the node's own is granted."""

    def __init__(self, voters: VoterSet, local_id: int) -> None:
        self._voters = voters
        self._votes: dict[int, bool] = {local_id: True}

    def record(self, voter_id: int, *, granted: bool) -> None:
        """Count an answer; the last one of a voter counts."""
        self._votes[voter_id] = granted

    @property
    def granting(self) -> tuple[int, ...]:
        """Who granted its vote, ascending."""
        return tuple(sorted(voter_id for voter_id, granted in self._votes.items() if granted))

    @property
    def unrecorded(self) -> tuple[int, ...]:
        """Who has not answered yet."""
        return tuple(voter_id for voter_id in self._voters.ids if voter_id not in self._votes)

    @property
    def is_won(self) -> bool:
        """A majority granted its vote."""
        return len(self.granting) >= self._voters.majority

    @property
    def is_lost(self) -> bool:
        """Those that granted and those that may yet do so are no majority."""
        return len(self.granting) + len(self.unrecorded) < self._voters.majority


@dataclass(slots=True)
class Unattached:
    """See the top of this file. An observer that lost its leader still knows its id."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    election_deadline_ms: int
    role = Role.UNATTACHED


@dataclass(slots=True)
class Prospective:
    """The leader may be known: it does not answer."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    election_deadline_ms: int
    ballot: Ballot
    role = Role.PROSPECTIVE


@dataclass(slots=True)
class Candidate:
    """It voted for itself."""

    epoch: int
    voted: ReplicaKey
    election_deadline_ms: int
    ballot: Ballot
    leader_id: int = NO_LEADER
    role = Role.CANDIDATE


@dataclass(slots=True)
class Follower:
    """It knows who leads.

    :param has_fetched: the leader has answered a fetch; until then a pre-vote may still be granted.
    :param snapshot: what has come of the snapshot that is fetched.
    """

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    fetch_deadline_ms: int
    has_fetched: bool = False
    snapshot_id: OffsetAndEpoch | None = None
    snapshot: bytearray = field(default_factory=bytearray)
    role = Role.FOLLOWER


@dataclass(slots=True)
class Leader:
    """What it knows of the others is in `leadership`."""

    epoch: int
    leader_id: int
    voted: None
    leadership: Leadership
    role = Role.LEADER


@dataclass(slots=True)
class Resigned:
    """It led this epoch.

    :param unacknowledged: voters that have not yet said that they know of the resignation.
    :param unreachable: voters that could not be told.
    """

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    election_deadline_ms: int
    preferred_successors: tuple[ReplicaKey, ...]
    unacknowledged: set[int]
    unreachable: set[int] = field(default_factory=set)
    role = Role.RESIGNED


State = Unattached | Prospective | Candidate | Leader | Resigned | Follower


def grants_vote(state: State, candidate: ReplicaKey, *, is_log_up_to_date: bool, pre_vote: bool) -> bool:
    """Whether a node in this state votes for a candidate of its own epoch.

    | state                   | pre-vote, if the log is not behind    | vote                                       |
    |-------------------------|---------------------------------------|--------------------------------------------|
    | Unattached, Prospective | yes                                   | for whom it voted; or, if it has not and   |
    |                         |                                       | knows no leader, if the log is not behind  |
    | Follower                | until its leader has answered a fetch | no                                         |
    | Candidate, Resigned     | yes                                   | no                                         |
    | Leader                  | no                                    | no                                         |
    """
    match state:
        case Leader():
            return False
        case Follower():
            return pre_vote and is_log_up_to_date and not state.has_fetched
        case Candidate() | Resigned():
            return pre_vote and is_log_up_to_date
        case _ if pre_vote:
            return is_log_up_to_date
        case _ if state.voted is not None:
            return state.voted.matches(candidate)
    return state.leader_id == NO_LEADER and is_log_up_to_date
