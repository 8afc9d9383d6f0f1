"""The state in which a node begins, from what it finds on its disk. Kafka's `QuorumState.initialize`."""

from reference_broker.core.clock import Now
from reference_broker.core.quorum.election_state import ElectionState
from reference_broker.core.quorum.patience import Patience
from reference_broker.core.quorum.states import Ballot, Candidate, Follower, Resigned, State, Unattached
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet


def first_state(election: ElectionState, local: ReplicaKey, voters: VoterSet, patience: Patience, now: Now) -> State:
    """Of a node that last knew this of its epoch.

    | it knew                         | it begins as                                                                |
    |---------------------------------|-----------------------------------------------------------------------------|
    | that it led the epoch           | Resigned: it may have lost records that it gave an offset and this epoch,   |
    |                                 | and must not give them to others                                            |
    | another leader                  | Follower                                                                    |
    | that it voted for itself        | Candidate                                                                   |
    | nothing, or a vote for another  | Unattached                                                                  |
    """
    epoch, leader_id, voted = election.epoch, election.leader_id, election.voted
    if leader_id == local.id:
        others = set(voters.others(local.id))
        return Resigned(epoch, leader_id, voted, patience.election_deadline_ms(now), (), others)
    if voters.get(leader_id) is not None:
        return Follower(epoch, leader_id, voted, patience.fetch_deadline_ms(now))
    if voted == local and voters.contains(local):
        return Candidate(epoch, local, patience.election_deadline_ms(now), Ballot(voters, local.id))
    deadline_ms = patience.first_election_deadline_ms(now) if epoch == 0 else patience.election_deadline_ms(now)
    return Unattached(epoch, leader_id, voted, deadline_ms)
