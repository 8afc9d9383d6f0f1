"""A broker that ends before it has opened its logs keeps the checkpoints of these logs."""

from reference_broker.core.log.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
)
from tests.reference_broker.cluster import Cluster
from tests.reference_broker.requests import batch

CHECKPOINTS = (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE)
PROPERTIES = {
    "log_flush_offset_checkpoint_interval_ms": "100",
    "replica_high_watermark_checkpoint_interval_ms": "100",
    "controlled_shutdown_enable": "false",
}


def cluster_with_records() -> Cluster:
    """Return a cluster of three nodes with a topic of three replicas and three records. Two records are deleted."""
    cluster = Cluster(3, **PROPERTIES)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 3}
    assert cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=5_000).topics[0].error_code == 0
    leader = cluster.nodes[1].metadata.image.partition("orders", 0).leader
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch(b"a", b"b", b"c")}]}]
    response = cluster.request(leader, "Produce", 9, acks=-1, timeout=3_000, topic_data=data)
    assert response.responses[0].partition_responses[0].error_code == 0
    deleted = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 2}]}]
    response = cluster.request(leader, "DeleteRecords", 2, topics=deleted, timeout=3_000)
    assert response.topics[0].partitions[0].low_watermark == 2
    cluster.run(1_000)
    return cluster


def checkpoints(cluster: Cluster, node_id: int) -> dict[str, bytes]:
    return {name: bytes(cluster.disks[node_id].files[name]) for name in CHECKPOINTS}


def test_node_that_waits_for_a_quorum_keeps_its_checkpoints():
    cluster = cluster_with_records()
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    before = checkpoints(cluster, 3)
    assert b"orders 0 2" in before[LOG_START_FILE]
    assert b"orders 0 3" in before[HIGH_WATERMARK_FILE]
    cluster.start(3)
    cluster.run(5_000)
    assert checkpoints(cluster, 3) == before
    cluster.start(1)
    cluster.start(2)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    partition = cluster.nodes[3].broker.replicas.get("orders", 0)
    assert (partition.log_start_offset, partition.high_watermark) == (2, 3)


def test_node_that_stops_before_opening_its_logs_keeps_its_clean_shutdown_file():
    cluster = cluster_with_records()
    cluster.stop(3)
    clean = bytes(cluster.disks[3].files[CLEAN_SHUTDOWN_FILE])
    before = checkpoints(cluster, 3)
    cluster.kill(1)
    cluster.kill(2)
    cluster.start(3)
    cluster.run(500)
    cluster.stop(3)
    assert checkpoints(cluster, 3) == before
    assert bytes(cluster.disks[3].files[CLEAN_SHUTDOWN_FILE]) == clean


def test_clean_shutdown_before_recovery_leaves_no_clean_shutdown_file():
    cluster = cluster_with_records()
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    cluster.start(3)
    cluster.run(500)
    cluster.stop(3)
    assert CLEAN_SHUTDOWN_FILE not in cluster.disks[3].files


def test_recreated_topic_does_not_use_checkpoints_of_the_deleted_one():
    cluster = cluster_with_records()
    cluster.kill(3)
    cluster.run_until(lambda: cluster.nodes[1].metadata.image.partition("orders", 0).leader != 3)
    fields = {"topics": [{"name": "orders", "topic_id": None}], "timeout": 5_000}
    assert cluster.request(1, "DeleteTopics", 6, **fields).responses[0].error_code == 0
    assignment = [{"partition_index": 0, "broker_ids": (1, 2, 3)}]
    topic = {"name": "orders", "num_partitions": -1, "replication_factor": -1, "assignments": assignment}
    assert cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=5_000).topics[0].error_code == 0
    cluster.start(3)
    cluster.run_until(lambda: cluster.nodes[3].is_ready)
    cluster.run(1_000)
    partition = cluster.nodes[3].broker.replicas.get("orders", 0)
    assert partition.log_start_offset == partition.high_watermark == 0
    assert b"orders 0 0" in cluster.disks[3].files[LOG_START_FILE]
