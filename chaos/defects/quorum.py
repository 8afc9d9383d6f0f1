"""Defects of the metadata quorum: votes, majorities, truncation, snapshots. They are common bugs of Raft.

All of them are also tested on the quorum alone (`tests/reference_broker/quorum`), where an election needs much less
computing time. There each defect has a kind of scenario, which must detect it with at least three of 80 seeds.
"""

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.leader_state import LeaderState
from reference_broker.core.quorum.messages import NO_LEADER, OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.quorum_state import (
    Candidate,
    EpochElection,
    Prospective,
    QuorumState,
    Resigned,
    State,
    Unattached,
)
from reference_broker.core.quorum.voters import ReplicaKey

_RAFT = "https://raft.github.io/raft.pdf"
"""Section 5.4.1 has the comparison of logs in a vote, section 5.4.2 the commitment of records of older epochs."""

_seeds = Area.QUORUM.seeds
_can_grant_vote = QuorumState.can_grant_vote
_write = ElectionStateStore.write
_initial_state = QuorumState._initial_state


@_seeds(
    LeaderState,
    "_may_commit",
    "quorum-watermark-monotone",
    "quorum-committed-equal",
    "exception",
    source=f"{_RAFT}, KAFKA-12619",
)
def commit_an_older_epoch_by_count(self: LeaderState, offset: int) -> bool:
    """Records of an older epoch count as committed when a majority has them.

    A later leader may validly lack them. Metadata that brokers have applied is lost.
    """
    return True


@_seeds(LeaderState, "_reached_by_majority", "quorum-majority", "quorum-committed-equal", "exception")
def count_half_as_a_majority(self: LeaderState) -> int:
    """A record is committed when one voter fewer than a majority has it.

    With three voters the leader commits alone. The next leader may lack a topic whose creation was acknowledged.
    """
    end_offsets = sorted((state.end_offset for state in self._voter_states.values()), reverse=True)
    return end_offsets[max(self._voters.majority - 2, 0)]


@_seeds(EpochElection, "is_vote_granted", "quorum-leader-complete", "quorum-one-leader", "exception")
def win_without_a_majority(self: EpochElection) -> bool:
    """An election is won with one vote fewer than a majority.

    Two controllers are active in one epoch, each with its own log.
    """
    return len(self.granting_voters) >= self._voters.majority - 1


@_seeds(QuorumLog, "is_behind_or_equal", "quorum-votes", "quorum-committed-equal", "exception", source=_RAFT)
def vote_without_comparing_logs(self: QuorumLog, other: OffsetAndEpoch) -> bool:
    """A voter votes for any candidate, even if its log is shorter.

    A controller that lacks committed metadata is elected, and the others truncate their logs to its log.
    """
    return True


@_seeds(QuorumState, "can_grant_vote", "quorum-one-leader", "exception", "quorum-response")
def vote_twice(self: QuorumState, candidate: ReplicaKey, *, is_log_up_to_date: bool, is_pre_vote: bool) -> bool:
    """A voter that has voted in this epoch votes again for any candidate whose log is up to date.

    Two candidates win one election.
    """
    if isinstance(self.state, Unattached | Prospective) and not is_pre_vote:
        return is_log_up_to_date
    return _can_grant_vote(self, candidate, is_log_up_to_date=is_log_up_to_date, is_pre_vote=is_pre_vote)


@_seeds(QuorumState, "can_grant_vote", "quorum-committed-equal", "quorum-votes")
def pre_vote_without_comparing_logs(
    self: QuorumState, candidate: ReplicaKey, *, is_log_up_to_date: bool, is_pre_vote: bool
) -> bool:
    """A pre-vote is granted to a candidate whose log is behind.

    That candidate disturbs the leader with elections that it cannot win.
    """
    is_up_to_date = is_log_up_to_date or is_pre_vote
    return _can_grant_vote(self, candidate, is_log_up_to_date=is_up_to_date, is_pre_vote=is_pre_vote)


@_seeds(ElectionStateStore, "write", "quorum-epochs-grow", "exception")
def forget_the_epoch(self: ElectionStateStore, election: ElectionState) -> None:
    """An epoch is stored only once its leader is known.

    A restarted voter returns to an older epoch, and votes again in an epoch in which it has voted.
    """
    if election.leader_id != NO_LEADER:
        _write(self, election)


@_seeds(QuorumState, "_initial_state", "quorum-consistent", "quorum-one-leader", "exception")
def stand_again_after_a_restart(self: QuorumState, election: ElectionState, now: Now) -> State:
    """A restarted leader is a candidate for its own old epoch, as if it had voted for itself.

    It requests votes in an epoch that already had a leader.
    """
    state = _initial_state(self, election, now)
    if isinstance(state, Resigned):
        return Candidate(state.epoch, self.local, now.monotonic_ms, EpochElection(self.voters, self.local.id))
    return state


@_seeds(QuorumLog, "diverging_epoch", "quorum-log-matching", "exception", "quorum-response")
def see_no_divergence_of_the_quorum(self: QuorumLog, offset: int, epoch: int) -> OffsetAndEpoch | None:
    """The leader of the quorum does not compare a voter's last epoch with its own log.

    Records that the leader never had stay in the voter's log: nodes replay different metadata.
    """
    return None


@_seeds(
    QuorumConfig,
    "check_quorum_timeout_ms",
    "quorum-check-quorum",
    "one-controller-per-epoch",
    "unavailable",
    source="KAFKA-15489",
)
def never_resign(self: QuorumConfig) -> int:
    """A leader does not resign although no majority fetches from it.

    Brokers on its side of a network partition cannot register and get no metadata. Clients wait for responses
    that cannot be sent.
    """
    return 1_000_000_000


@_seeds(QuorumLog, "install_snapshot", "quorum-snapshot-at-start", "exception")
def keep_the_log_under_a_snapshot(self: QuorumLog, snapshot_id: OffsetAndEpoch, data: bytes, now_ms: int) -> None:
    """A snapshot from the leader is stored, but the log is not truncated to it.

    The node fetches records after its old log end, and gets the snapshot again.
    """
    self.snapshots.store(snapshot_id, data)
