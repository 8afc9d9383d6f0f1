"""Partition changes: examples, and random cases compared with a simple model.

Partitions are written `replicas / ISR / leader`: `partition("123", "12", 1)`.
"""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_broker.core.controller.partition_changes import (
    Candidates,
    Election,
    LeaderRecoveryState,
    RequestedChange,
    partition_change,
)
from reference_broker.core.metadata.image import changed
from reference_broker.protocol.metadata_records import NO_LEADER, NO_LEADER_CHANGE, PartitionRecord

TOPIC = UUID(int=500)


def brokers(digits):
    return tuple(int(digit) for digit in digits)


def directory(broker_id):
    return UUID(int=1000 + broker_id)


def partition(replicas, isr, leader, *, removing="", adding="", recovery=LeaderRecoveryState.RECOVERED):
    return PartitionRecord(
        partition_id=0,
        topic_id=TOPIC,
        replicas=brokers(replicas),
        isr=brokers(isr),
        removing_replicas=brokers(removing),
        adding_replicas=brokers(adding),
        leader=leader,
        leader_recovery_state=recovery,
        leader_epoch=5,
        partition_epoch=9,
        directories=tuple(map(directory, brokers(replicas))),
    )


def after(before, alive, **wanted):
    """Return the partition after a change, or None if nothing changes.

    :param alive: the active brokers, one digit each.
    :param wanted: fields of `RequestedChange`; strings are broker ids, one digit each.
    """
    wanted = {name: brokers(value) if isinstance(value, str) else value for name, value in wanted.items()}
    change = partition_change(
        before, RequestedChange(**wanted), Candidates(lambda broker: str(broker) in alive, directory)
    )
    return None if change is None else changed(before, change)


def test_active_in_sync_leader_stays():
    assert after(partition("123", "123", 2), "123") is None


def test_first_in_sync_replica_replaces_a_lost_leader():
    now = after(partition("123", "123", 1), "23", isr="23")
    assert (now.leader, now.isr, now.leader_epoch, now.partition_epoch) == (2, (2, 3), 6, 10)


def test_election_uses_the_order_of_replicas_not_of_the_isr():
    assert after(partition("312", "213", 2), "13", isr="13").leader == 3


def test_out_of_sync_replica_is_not_elected():
    now = after(partition("123", "1", 1), "23", isr="")
    assert (now.leader, now.isr, now.leader_epoch) == (NO_LEADER, (1,), 6)


def test_unclean_leader_is_the_only_isr_member_and_recovering():
    now = after(partition("123", "1", 1), "23", isr="", election=Election.UNCLEAN)
    assert (now.leader, now.isr, now.leader_recovery_state) == (2, (2,), LeaderRecoveryState.RECOVERING)


def test_clean_election_is_preferred_to_an_unclean_one():
    now = after(partition("123", "13", 1), "23", isr="3", election=Election.UNCLEAN)
    assert (now.leader, now.isr, now.leader_recovery_state) == (3, (3,), LeaderRecoveryState.RECOVERED)


def test_last_in_sync_replica_is_elected_when_it_returns():
    now = after(partition("123", "1", NO_LEADER), "123")
    assert (now.leader, now.isr, now.leader_epoch) == (1, (1,), 6)


def test_eligible_leader_replica_is_elected_if_the_isr_is_empty():
    """Only Kafka writes such partitions (KIP-966)."""
    without_isr = partition("123", "", NO_LEADER)
    assert after(without_isr, "123") is None
    assert after(replace(without_isr, eligible_leader_replicas=(2,)), "123").leader == 2


def test_isr_shrink_keeps_the_leader_epoch():
    now = after(partition("123", "123", 1), "123", isr="12")
    assert (now.isr, now.leader, now.leader_epoch, now.partition_epoch) == ((1, 2), 1, 5, 10)


def test_preferred_replica_is_elected_if_it_is_in_sync():
    preferred = Election.PREFERRED
    assert after(partition("123", "123", 2), "123", election=preferred).leader == 1
    assert after(partition("123", "23", 2), "123", election=preferred) is None
    assert after(partition("123", "123", 2), "23", election=preferred) is None
    assert after(partition("123", "23", 2), "3", election=preferred).leader == 3


def test_recovery_of_the_leader_is_recorded():
    before = partition("123", "2", 2, recovery=LeaderRecoveryState.RECOVERING)
    now = after(before, "123", isr="2", leader_recovery_state=LeaderRecoveryState.RECOVERED)
    assert (now.leader_recovery_state, now.leader_epoch, now.partition_epoch) == (0, 5, 10)


def test_reassignment_continues_until_all_new_replicas_are_in_sync():
    before = partition("3412", "12", 1, removing="12", adding="34")
    assert after(before, "1234", isr="123").replicas == (3, 4, 1, 2)


def test_completed_reassignment_elects_a_new_leader():
    before = partition("3412", "123", 1, removing="12", adding="34")
    now = after(before, "1234", isr="1234")
    assert (now.replicas, now.isr, now.leader) == ((3, 4), (3, 4), 3)
    assert (now.removing_replicas, now.adding_replicas) == ((), ())
    assert now.leader_epoch == 6
    assert now.directories == (directory(3), directory(4))


def test_completed_reassignment_with_removed_replicas_increments_the_leader_epoch():
    before = partition("123", "12", 1, removing="3")
    now = after(before, "123", isr="12")
    assert (now.replicas, now.leader, now.leader_epoch) == ((1, 2), 1, 6)


def test_completed_reassignment_with_only_added_replicas_keeps_the_leader_epoch():
    now = after(partition("12", "12", 1), "123", replicas="123", adding="3")
    assert (now.replicas, now.directories[-1], now.leader_epoch) == ((1, 2, 3), directory(3), 5)
    done = after(now, "123", isr="123")
    assert (done.adding_replicas, done.leader_epoch, done.partition_epoch) == ((), 5, 11)


@pytest.mark.parametrize("election", Election)
def test_no_leader_is_elected_without_active_replicas(election):
    now = after(partition("123", "123", 1), "", isr="23", election=election)
    assert (now.leader, now.isr) == (NO_LEADER, (2, 3))


some_brokers = st.lists(st.integers(1, 5), unique=True)
cases = st.builds(
    lambda replicas, isr, leader, alive, election, shuffled: (
        partition(
            "".join(map(str, replicas)),
            "".join(str(replica) for replica in shuffled if replica in isr and replica in replicas) or str(replicas[0]),
            leader if leader in replicas else NO_LEADER,
        ),
        alive,
        election,
    ),
    some_brokers.filter(bool),
    some_brokers,
    st.integers(1, 5),
    some_brokers,
    st.sampled_from(Election),
    st.permutations(range(1, 6)),
)


@given(cases, some_brokers)
def test_every_change_equals_that_of_the_model(case, gone):
    """The model ranks all replicas, while the code searches them in order."""
    before, alive, election = case
    isr = tuple(replica for replica in before.isr if replica not in gone)
    change = partition_change(
        before, RequestedChange(isr=isr, election=election), Candidates(lambda broker: broker in alive, directory)
    )
    now = before if change is None else changed(before, change)

    def rank(replica):
        return (
            replica not in isr,
            election is Election.PREFERRED and replica != before.replicas[0],
            replica in isr and replica != before.leader,
            before.replicas.index(replica),
        )

    may_lead = [
        replica for replica in before.replicas if replica in alive and (replica in isr or election is Election.UNCLEAN)
    ]
    best = min(may_lead, key=rank, default=NO_LEADER)
    unclean = best != NO_LEADER and best not in isr and best != before.leader
    assert now.leader == best
    assert now.isr == ((best,) if unclean else isr or before.isr)
    assert now.leader_epoch - before.leader_epoch == (best != before.leader)
    assert now.partition_epoch - before.partition_epoch == (change is not None)
    assert change is None or change.leader in {best, NO_LEADER_CHANGE}
