"""Replication between complete nodes with the real controller: effects of elections and reassignments on clients."""

from typing import Any

import pytest

from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.cluster import CLIENT, PORTS, host_of
from tests.reference_broker.cluster import Cluster
from tests.reference_broker.scripted import batch

TOPIC = "orders"


def start(size: int = 3, replicas: tuple[int, ...] = (1, 2, 3), *, min_isr: int = 1, **properties: str) -> Cluster:
    """Return a cluster with a topic of one partition. The first replica is the leader."""
    cluster = Cluster(size, roles=dict.fromkeys(range(4, size + 1), "broker"), **properties)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    topic = {
        "name": TOPIC,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": replicas}],
        "configs": [{"name": "min.insync.replicas", "value": str(min_isr)}],
    }
    [created] = cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=10_000).topics
    assert created.error_code is ErrorCode.none
    cluster.run_until(lambda: all(partition(cluster, node) for node in replicas))
    return cluster


def partition(cluster: Cluster, node: int) -> Any:
    return cluster.nodes[node].broker.replicas.get(TOPIC, 0)


def state(cluster: Cluster) -> Any:
    """Return the newest of the partition's states in the metadata images of all nodes."""
    known = (node.broker.image.partition(TOPIC, 0) for node in cluster.nodes.values())
    return max(filter(None, known), key=lambda record: record.partition_epoch)


def leader(cluster: Cluster) -> int:
    return state(cluster).leader


def isr(cluster: Cluster) -> set[int]:
    return set(state(cluster).isr)


def produce(cluster: Cluster, node: int, *values: bytes, acks: int = -1, version: int = 11, **producer: int) -> Any:
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(*values, **producer)}]}]
    response = cluster.request(node, "Produce", version, acks=acks, timeout=20_000, topic_data=data)
    return response.responses[0].partition_responses[0]


def fetch(cluster: Cluster, node: int, version: int = 12, offset: int = 0, **fields: Any) -> Any:
    defaults = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, "current_leader_epoch": -1}
    named = {"topic": TOPIC} if version < 13 else {"topic_id": partition(cluster, node).topic_id}
    topics = [{**named, "partitions": [{**defaults, **fields}]}]
    response = cluster.request(node, "Fetch", version, replica_id=-1, max_wait=0, max_bytes=1 << 20, topics=topics)
    return response, response.responses[0].partitions[0]


def test_killed_leader_loses_no_record_and_rejoins_the_isr_after_a_restart() -> None:
    cluster = start()
    assert produce(cluster, 1, b"a").error_code is ErrorCode.none
    cluster.kill(1)
    cluster.run_until(lambda: leader(cluster) in {2, 3}, within_ms=60_000)
    successor = leader(cluster)
    assert produce(cluster, successor, b"b").base_offset == 1
    cluster.start(1)
    cluster.run_until(lambda: isr(cluster) == {1, 2, 3}, within_ms=60_000)
    ends = {partition(cluster, node).log.log_end_offset for node in (1, 2, 3)}
    assert ends == {2}


def test_new_leader_recognizes_a_duplicate_batch_of_a_producer() -> None:
    cluster = start()
    idempotent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = produce(cluster, 1, b"a", **idempotent)
    cluster.kill(1)
    cluster.run_until(lambda: leader(cluster) in {2, 3}, within_ms=60_000)
    again = produce(cluster, leader(cluster), b"a", **idempotent)
    assert (first.base_offset, again.error_code, again.base_offset) == (0, ErrorCode.none, 0)


def test_produce_to_a_follower_returns_the_current_leader() -> None:
    cluster = start()
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    response = cluster.request(2, "Produce", 11, acks=1, timeout=1_000, topic_data=data)
    rejected = response.responses[0].partition_responses[0]
    assert rejected.error_code is ErrorCode.not_leader_or_follower
    assert (rejected.current_leader.leader_id, rejected.current_leader.leader_epoch) == (1, 0)
    assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [
        (1, host_of(1), PORTS[CLIENT])
    ]


def test_produce_to_a_broker_without_a_replica_returns_the_current_leader() -> None:
    cluster = start(4)
    rejected = produce(cluster, 4, b"a")
    assert (rejected.error_code, rejected.current_leader.leader_id) == (ErrorCode.not_leader_or_follower, 1)


@pytest.mark.parametrize(
    ("version", "error"), [(10, ErrorCode.not_leader_or_follower), (11, ErrorCode.none), (17, ErrorCode.none)]
)
def test_follower_accepts_fetches_of_consumers_since_version_11(version: int, error: ErrorCode) -> None:
    cluster = start()
    produce(cluster, 1, b"a")
    cluster.run(1_000)
    _, fetched = fetch(cluster, 2, version)
    assert fetched.error_code is error
    assert bool(fetched.records) is (error is ErrorCode.none)


def test_fetch_with_another_leader_epoch_is_rejected_and_returns_the_current_leader() -> None:
    cluster = start()
    cluster.kill(1)
    cluster.run_until(lambda: leader(cluster) in {2, 3}, within_ms=60_000)
    successor = leader(cluster)
    response, fetched = fetch(cluster, successor, 17, current_leader_epoch=0)
    assert (fetched.error_code, fetched.current_leader.leader_id) == (ErrorCode.fenced_leader_epoch, successor)
    assert [node.node_id for node in response.node_endpoints] == [successor]
    _, fetched = fetch(cluster, successor, 17, current_leader_epoch=9)
    assert fetched.error_code is ErrorCode.unknown_leader_epoch


def test_delete_records_completes_when_every_live_replica_has_deleted_them() -> None:
    cluster = start()
    produce(cluster, 1, b"a", b"b", b"c")
    topics = [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 2}]}]
    responses = cluster.start_request(1, "DeleteRecords", 2, topics=topics, timeout=10_000)
    cluster.run(3)
    assert responses == []
    cluster.run_until(lambda: responses)
    [deleted] = responses[0].topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.none, 2)
    assert {partition(cluster, node).log_start_offset for node in (1, 2, 3)} == {2}


def test_reassigned_partition_has_all_records_on_its_new_replicas() -> None:
    cluster = start(5, (1, 2))
    produce(cluster, 1, b"a", b"b")
    moves = [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": [4, 5]}]}]
    moved = cluster.request(1, "AlterPartitionReassignments", 0, topics=moves, timeout=10_000)
    assert moved.responses[0].partitions[0].error_code is ErrorCode.none
    cluster.run_until(lambda: isr(cluster) == {4, 5}, within_ms=60_000)
    cluster.run_until(lambda: leader(cluster) == 4 and partition(cluster, 4).is_leader)
    cluster.run(1_000)
    assert partition(cluster, 4).log.log_end_offset == partition(cluster, 5).log.log_end_offset == 2
    for node in (1, 2):
        assert partition(cluster, node) is None
        assert not cluster.disks[node].exists(f"{TOPIC}-0")


def test_acks_all_times_out_while_the_isr_cannot_shrink() -> None:
    cluster = start(min_isr=2)
    produce(cluster, 1, b"a")
    cluster.kill(2)
    cluster.kill(3)
    cluster.run(1)
    # The killed nodes are two of the three voters. Without a quorum, the ISR cannot shrink.
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(b"b")}]}]
    responses = cluster.start_request(1, "Produce", 11, acks=-1, timeout=5_000, topic_data=data)
    cluster.run(5_100)
    assert responses[0].responses[0].partition_responses[0].error_code is ErrorCode.request_timed_out


def test_changed_min_insync_replicas_takes_effect_at_run_time() -> None:
    cluster = start(min_isr=1)
    settings = [{"name": "min.insync.replicas", "value": "3", "config_operation": 0}]
    resource = {"resource_type": 2, "resource_name": TOPIC, "configs": settings}
    cluster.request(1, "IncrementalAlterConfigs", 1, resources=[resource])
    cluster.run_until(lambda: partition(cluster, 1).min_insync_replicas == 3)
    cluster.kill(3)
    cluster.run_until(lambda: isr(cluster) == {1, 2}, within_ms=60_000)
    assert produce(cluster, 1, b"a").error_code is ErrorCode.not_enough_replicas
