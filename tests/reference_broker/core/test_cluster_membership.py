"""Cluster membership in virtual time: registration, failures, restarts and replaced disks."""

import pytest

from reference_broker.core.broker_lifecycle_manager import BrokerState
from tests.reference_broker.cluster import CONTROLLER, Cluster

SESSION_MS = 9_000
ORDERS = {"name": "orders", "num_partitions": 3, "replication_factor": 3}


@pytest.fixture
def cluster():
    """Return a running cluster with a topic of three partitions, each with a different leader."""
    running = Cluster(3)
    running.run_until(lambda: all(node.is_ready for node in running.nodes.values()))
    response = running.request(1, "CreateTopics", 7, topics=[ORDERS], timeout=5_000)
    assert response.topics[0].error_code == 0
    running.run_until(lambda: all("orders" in node.metadata.image.topics for node in running.nodes.values()))
    return running


def image(cluster):
    """Return the image of any running node."""
    return next(iter(cluster.nodes.values())).metadata.image


def leaders(cluster):
    return [partition.leader for _, partition in sorted(image(cluster).topics["orders"].partitions.items())]


def isr_sizes(cluster):
    return {len(partition.isr) for partition in image(cluster).partitions()}


def test_a_broker_deletes_removed_replicas_when_it_restarts(cluster):
    """While the broker was down, a topic was deleted and a replica reassigned."""
    moved = {**ORDERS, "name": "moved", "num_partitions": 1}
    cluster.request(1, "CreateTopics", 7, topics=[moved], timeout=5_000)
    cluster.run(1_000)
    cluster.kill(3)
    cluster.run(SESSION_MS)
    cluster.request(1, "DeleteTopics", 5, topic_names=["orders"], timeout_ms=5_000)
    away = {"name": "moved", "partitions": [{"partition_index": 0, "replicas": (1, 2)}]}
    cluster.request(1, "AlterPartitionReassignments", 0, topics=[away], timeout_ms=5_000)
    assert {"orders-0", "moved-0"} <= set(cluster.disks[3].list(""))
    cluster.start(3)
    cluster.run_until(lambda: cluster.nodes[3].is_ready)
    assert not [name for name in cluster.disks[3].list("") if name.startswith(("orders-", "moved-"))]
    assert "__cluster_metadata-0" in cluster.disks[3].list("")
    assert "moved-0" in cluster.disks[1].list("")


def shut_down(cluster, node_id):
    """Shut a node down cleanly, and return the duration in ms."""
    began_ms = cluster.now.monotonic_ms
    cluster.stop(node_id)
    return cluster.now.monotonic_ms - began_ms


def other_than(cluster, node_id):
    return next(other for other in cluster.nodes if other != node_id)


def test_a_killed_broker_is_fenced_after_its_session_and_loses_its_leaderships(cluster):
    victim = other_than(cluster, cluster.active_controller)
    assert sorted(leaders(cluster)) == [1, 2, 3]
    cluster.kill(victim)
    cluster.run(SESSION_MS - 2_000)
    assert victim in leaders(cluster)
    cluster.run(2_500)
    assert victim not in leaders(cluster)
    assert image(cluster).brokers[victim].fenced


def test_a_killed_broker_registers_again_when_its_old_session_expires(cluster):
    victim = other_than(cluster, cluster.active_controller)
    old_epoch = image(cluster).brokers[victim].broker_epoch
    cluster.kill(victim)
    cluster.start(victim)
    cluster.run(SESSION_MS - 2_500)
    assert cluster.nodes[victim].broker.lifecycle.state is BrokerState.STARTING
    cluster.run_until(lambda: cluster.nodes[victim].is_ready, within_ms=4_000)
    assert image(cluster).brokers[victim].broker_epoch > old_epoch


def test_killing_the_controller_fences_no_other_broker(cluster):
    victim = cluster.active_controller
    cluster.kill(victim)
    epochs = {broker_id: broker.broker_epoch for broker_id, broker in image(cluster).brokers.items()}
    cluster.run_until(lambda: image(cluster).brokers[victim].fenced, within_ms=SESSION_MS + 4_000)
    cluster.run(2 * SESSION_MS)
    brokers = image(cluster).brokers
    assert [broker_id for broker_id, broker in brokers.items() if broker.fenced] == [victim]
    assert {broker_id: broker.broker_epoch for broker_id, broker in brokers.items()} == epochs
    assert victim not in leaders(cluster)
    assert -1 not in leaders(cluster)


def test_brokers_that_shut_down_one_by_one_leave_no_partition_without_a_leader(cluster):
    for node_id in (1, 2, 3):
        assert shut_down(cluster, node_id) < 1_500
        cluster.run_until(lambda: cluster.active_controller)
        assert image(cluster).brokers[node_id].fenced
        assert node_id not in leaders(cluster)
        assert -1 not in leaders(cluster)
        cluster.start(node_id)
        cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()), within_ms=3_000)
        cluster.run_until(lambda: isr_sizes(cluster) == {3})


def test_a_cluster_shuts_down_in_a_bounded_time(cluster):
    began_ms = cluster.now.monotonic_ms
    for node_id in cluster.nodes:
        cluster.begin_shutdown(node_id)
    cluster.run_until(lambda: not cluster.nodes)
    assert cluster.now.monotonic_ms - began_ms < SESSION_MS


def test_a_cluster_recovers_after_all_nodes_are_killed(cluster):
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()), within_ms=SESSION_MS + 6_000)
    cluster.run_until(lambda: isr_sizes(cluster) == {3} and -1 not in leaders(cluster))


def test_a_broker_is_unregistered(cluster):
    victim = other_than(cluster, cluster.active_controller)
    shut_down(cluster, victim)
    other = other_than(cluster, victim)
    assert cluster.request(other, "UnregisterBroker", 0, broker_id=victim).error_code == 0
    cluster.run_until(lambda: victim not in image(cluster).brokers)


def test_producer_ids_from_two_controllers_are_disjoint(cluster):
    def block():
        epoch = image(cluster).brokers[broker_id].broker_epoch
        fields = {"broker_id": broker_id, "broker_epoch": epoch}
        response = cluster.request(cluster.active_controller, "AllocateProducerIds", 0, listener=CONTROLLER, **fields)
        return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)

    broker_id = other_than(cluster, cluster.active_controller)
    first = block()
    cluster.kill(cluster.active_controller)
    cluster.run_until(lambda: cluster.active_controller)
    assert not set(first) & set(block())


def test_a_broker_that_is_not_a_controller_registers_and_shuts_down():
    cluster = Cluster(4, roles={4: "broker"})
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    assert image(cluster).brokers.keys() == {1, 2, 3, 4}
    assert shut_down(cluster, 4) < 1_000
    cluster.run_until(lambda: image(cluster).brokers[4].fenced, within_ms=1_000)


def test_a_broker_whose_disk_was_replaced_leads_again(cluster):
    victim = other_than(cluster, cluster.active_controller)
    cluster.kill(victim)
    cluster.run_until(lambda: victim not in leaders(cluster))
    cluster.wipe(victim)
    cluster.start(victim)
    cluster.run_until(lambda: isr_sizes(cluster) == {3})
    new_id = cluster.nodes[victim].runtime.identity.directory_id
    assert image(cluster).brokers[victim].log_dirs == (new_id,)
    partitions = list(image(cluster).topics["orders"].partitions.values())
    assert {partition.directories[partition.replicas.index(victim)] for partition in partitions} == {new_id}
    response = cluster.request(victim, "ElectLeaders", 2, election_type=0, topic_partitions=None, timeout=5_000)
    assert response.error_code == 0
    cluster.run_until(lambda: victim in leaders(cluster))
