"""Which answer counts, and who plays a role by it."""

import pytest

from chaos.faults import Role
from chaos.live.watch import PartitionSeen, QuorumSeen, View

SECOND = 1_000_000_000


def seen(leader=1, epoch=5, isr=(1, 2, 3), *, by_leader=False, at_ns=0, replicas=(1, 2, 3)):
    return PartitionSeen(leader, epoch, isr, replicas, by_leader, at_ns)


@pytest.mark.parametrize(
    ("first", "second", "isr"),
    [
        (seen(epoch=5, isr=(1,)), seen(epoch=4, isr=(2,)), (1,)),
        (seen(epoch=5, isr=(1,)), seen(epoch=6, isr=(2,)), (2,)),
        (seen(isr=(1,), by_leader=True), seen(isr=(1, 2), at_ns=SECOND // 2), (1,)),
        (seen(isr=(1,), by_leader=True), seen(isr=(1, 2), at_ns=2 * SECOND), (1, 2)),
        (seen(isr=(1,)), seen(isr=(1, 2)), (1, 2)),
        (seen(isr=(1,)), seen(isr=(1, 2), by_leader=True), (1, 2)),
    ],
)
def test_the_newest_answer_counts(first, second, isr):
    view = View()
    view.tell(0, first)
    view.tell(0, second)
    assert view.partitions[0].isr == isr


def test_roles_are_about_the_first_partition_the_quorum_and_the_group():
    view = View()
    view.tell(0, seen(leader=2, isr=(2, 3), replicas=(2, 3, 1)))
    view.tell(1, seen(leader=3))
    view.tell_quorum(QuorumSeen(3, 9, (1, 2, 3)))
    view.tell_quorum(QuorumSeen(1, 8, (1, 2, 3)))
    assert view.node(Role.COORDINATOR) is None
    view.tell_coordinator(2)
    found = {role: view.node(role) for role in Role}
    assert found == {
        Role.LEADER: 2,
        Role.FOLLOWER: 3,
        Role.LAST_FOLLOWER: 1,
        Role.CONTROLLER: 3,
        Role.STANDBY: 1,
        Role.COORDINATOR: 2,
        Role.CLIENTS: None,
    }
    assert view.node(7) == 7


def test_nobody_leads_where_nobody_says_so():
    view = View()
    assert view.node(Role.LEADER) is None
    view.tell(0, seen(leader=-1))
    assert view.node(Role.LEADER) is None
    assert view.node(Role.CONTROLLER) is None


def test_a_cluster_is_whole_once_every_node_has_said_so_since():
    view = View()
    view.tell(0, seen())
    assert view.is_whole(1, (1, 2), 100) is False
    for node in (1, 2):
        view.heard(node, 101)
    assert not view.is_whole(1, (1, 2), 100), "they have answered that they know of no such topic"
    view.tell(0, seen(at_ns=101))
    assert view.is_whole(1, (1, 2), 100)
    assert not view.is_whole(2, (1, 2), 100), "one partition is not known"
    view.tell(0, seen(isr=(1, 2), at_ns=101))
    assert not view.is_whole(1, (1, 2), 100)
