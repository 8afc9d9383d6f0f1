"""Metadata watch: the newest response counts, roles resolve to nodes, and every topic of a cluster must recover."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from chaos.live.watch import PartitionSeen, QuorumSeen, TopicPartition, View, Watch
from fixtures.clients.stage import THREADS
from fixtures.faults import Role

SECOND_NS = 1_000_000_000


A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def seen(leader=1, epoch=5, isr=(1, 2, 3), *, by_leader=False, at_ns=0, replicas=(1, 2, 3)):
    return PartitionSeen(leader, epoch, isr, replicas, by_leader, at_ns)


@pytest.mark.parametrize(
    ("first", "second", "isr"),
    [
        (seen(epoch=5, isr=(1,)), seen(epoch=4, isr=(2,)), (1,)),
        (seen(epoch=5, isr=(1,)), seen(epoch=6, isr=(2,)), (2,)),
        (seen(isr=(1,), by_leader=True), seen(isr=(1, 2), at_ns=SECOND_NS // 2), (1,)),
        (seen(isr=(1,), by_leader=True), seen(isr=(1, 2), at_ns=2 * SECOND_NS), (1, 2)),
        (seen(isr=(1,)), seen(isr=(1, 2)), (1, 2)),
        (seen(isr=(1,)), seen(isr=(1, 2), by_leader=True), (1, 2)),
    ],
)
def test_the_newest_response_counts(first, second, isr):
    view = View({"a": 1})
    view.update(TopicPartition("a", 0), first)
    view.update(TopicPartition("a", 0), second)
    assert view.partitions_of("a")[0].isr == isr


def test_roles_are_about_the_first_partition_the_quorum_and_the_group():
    view = View({"a": 1})
    view.update(A0, seen(leader=2, isr=(2, 3), replicas=(2, 3, 1)))
    view.update(A1, seen(leader=3))
    view.update_quorum(QuorumSeen(3, 9, (1, 2, 3)))
    view.update_quorum(QuorumSeen(1, 8, (1, 2, 3)))
    assert view.node(Role.COORDINATOR) is None
    view.update_coordinator(2)
    found = {role: view.node(role) for role in Role}
    initial = (Role.FIRST_REPLICA, Role.SECOND_REPLICA, Role.THIRD_REPLICA, Role.OUTSIDER, Role.NEWCOMER)
    assert found == {
        **dict.fromkeys(initial),
        Role.LEADER: 2,
        Role.FOLLOWER: 3,
        Role.LAST_FOLLOWER: 1,
        Role.CONTROLLER: 3,
        Role.STANDBY: 1,
        Role.COORDINATOR: 2,
        Role.CLIENTS: None,
    }
    assert view.node(7) == 7


def test_roles_without_a_known_leader_have_no_node():
    view = View({"a": 1})
    assert view.node(Role.LEADER) is None
    view.update(A0, seen(leader=-1))
    assert view.node(Role.LEADER) is None
    assert view.node(Role.CONTROLLER) is None


def test_a_cluster_is_whole_after_a_new_response_of_every_node():
    view = View({"a": 1})
    view.update(A0, seen())
    assert view.is_whole((1, 2), 100) is False
    for node in (1, 2):
        view.update_node(node, 101)
    assert not view.is_whole((1, 2), 100), "the nodes have responded, but without the topic"
    view.update(A0, seen(at_ns=101))
    assert view.is_whole((1, 2), 100)
    view.update(A1, seen(isr=(1, 2), at_ns=101))
    assert not view.is_whole((1, 2), 100), "the added partition has no full ISR"


def test_a_cluster_is_whole_if_every_topic_is():
    view = View({"a": 2, "b": 1, "created by a client": 0})
    view.update_node(1, 101)
    view.update(A0, seen(at_ns=101))
    view.update(B0, seen(at_ns=101))
    assert not view.is_whole((1,), 100), "one partition of the first topic is not known"
    view.update(A1, seen(at_ns=101))
    assert view.is_whole((1,), 100)
    view.update(B0, seen(isr=(1, 2), at_ns=102))
    assert not view.is_whole((1,), 100), "the second topic has no full ISR"


def test_every_topic_is_watched():
    class Client:
        def metadata(self, topics):
            partition = SimpleNamespace(
                partition_index=0, leader_id=1, leader_epoch=3, isr_nodes=(1,), replica_nodes=(1, 2)
            )
            named = [SimpleNamespace(name=topic, partitions=[partition]) for topic in topics]
            return SimpleNamespace(response=SimpleNamespace(topics=named))

        def describe_quorum(self):
            has_ended.set()
            return SimpleNamespace(error="NOT_CONTROLLER")

    has_ended = THREADS.event()
    stage = SimpleNamespace(start=THREADS.start, event=lambda: has_ended)
    target = SimpleNamespace(stage=stage, nodes=[SimpleNamespace(id=1)])
    recorder = SimpleNamespace(now_ns=lambda: 7)
    context = SimpleNamespace(
        find_initial=lambda _: None, target=target, recorder=recorder, raw_client=lambda *_, **__: nullcontext(Client())
    )
    watch = Watch(context, {"a": 1, "b": 1})
    watch.start()
    watch.stop()
    assert watch.view.partitions == dict.fromkeys((A0, B0), PartitionSeen(1, 3, (1,), (1, 2), by_leader=True, at_ns=7))


def test_roles_are_known_when_the_watch_has_started():
    class SlowClient:
        def metadata(self, topics):
            THREADS.event().wait(0.2)
            partition = SimpleNamespace(partition_index=0, leader_id=2, isr_nodes=(2,), replica_nodes=(1, 2))
            return SimpleNamespace(response=SimpleNamespace(topics=[SimpleNamespace(name="a", partitions=[partition])]))

        def describe_quorum(self):
            partition = SimpleNamespace(error_code=0, leader_id=1, leader_epoch=1, current_voters=[])
            response = SimpleNamespace(topics=[SimpleNamespace(partitions=[partition])])
            return SimpleNamespace(error=None, response=response)

    context = SimpleNamespace(
        find_initial=lambda _: None,
        target=SimpleNamespace(stage=THREADS, nodes=[SimpleNamespace(id=1), SimpleNamespace(id=2)]),
        recorder=SimpleNamespace(now_ns=lambda: 7),
        raw_client=lambda *_, **__: nullcontext(SlowClient()),
    )
    watch = Watch(context, {"a": 1})
    watch.start()
    try:
        assert (watch.view.node(Role.LEADER), watch.view.node(Role.CONTROLLER)) == (2, 1)
    finally:
        watch.stop()
