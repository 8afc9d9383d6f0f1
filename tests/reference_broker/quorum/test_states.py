"""Table of state transitions of a quorum node: its properties, and its copy in the module header."""

import re

import pytest

from reference_broker.core.quorum import quorum_state
from reference_broker.core.quorum.quorum_state import (
    TRANSITIONS,
    EpochElection,
    QuorumRole,
    QuorumStateError,
    Trigger,
    next_role,
)
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet


def test_header_equals_the_table():
    rows = re.findall(r"^\| (\w+) +\| ([A-Z_]+) +\| (\w+) ", quorum_state.__doc__, re.MULTILINE)
    shown = {
        (role, Trigger[trigger]): QuorumRole(following)
        for name, trigger, following in rows
        for role in (QuorumRole if name == "any" else [QuorumRole(name)])
    }
    assert shown == TRANSITIONS


def test_every_state_accepts_a_newer_epoch():
    for role in QuorumRole:
        assert next_role(role, Trigger.HIGHER_EPOCH) is QuorumRole.UNATTACHED
        assert next_role(role, Trigger.LEADER_FOUND) is QuorumRole.FOLLOWER


def test_leader_needs_votes_after_pre_votes():
    assert [row for row, role in TRANSITIONS.items() if role is QuorumRole.LEADER] == [
        (QuorumRole.CANDIDATE, Trigger.MAJORITY_GRANTED)
    ]
    assert [row for row, role in TRANSITIONS.items() if role is QuorumRole.CANDIDATE] == [
        (QuorumRole.PROSPECTIVE, Trigger.MAJORITY_GRANTED)
    ]
    assert [row for row, role in TRANSITIONS.items() if role is QuorumRole.RESIGNED] == [
        (QuorumRole.LEADER, Trigger.RESIGNATION)
    ]


def test_every_state_has_a_transition_by_timeout():
    timeouts = {
        Trigger.ELECTION_TIMEOUT,
        Trigger.FETCH_TIMEOUT,
        Trigger.RESIGNATION,
        Trigger.ELECTION_LOST,
    }
    for role in QuorumRole:
        assert any((role, trigger) in TRANSITIONS for trigger in timeouts), role


def test_transition_that_is_not_in_the_table_is_rejected():
    with pytest.raises(QuorumStateError, match="Follower"):
        next_role(QuorumRole.FOLLOWER, Trigger.MAJORITY_GRANTED)


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_election_is_decided_by_a_majority(count, majority):
    voters = VoterSet(Voter(ReplicaKey(number)) for number in range(count))
    won, lost = EpochElection(voters, 0), EpochElection(voters, 0)
    for number in range(1, count):
        assert won.is_vote_granted == (number >= majority)
        assert lost.is_vote_rejected == (number > count - majority + 0 and count - number + 1 < majority)
        won.record_vote(number, is_granted=True)
        lost.record_vote(number, is_granted=False)
    assert won.is_vote_granted
    assert lost.is_vote_rejected == (majority > 1)
