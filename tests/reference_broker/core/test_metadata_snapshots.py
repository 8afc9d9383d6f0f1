"""Snapshots replace the start of the metadata log without effect on the cluster (KIP-630)."""

import pytest

from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from tests.reference_broker.cluster import Cluster

FEW_BYTES = {"metadata_log_max_record_bytes_between_snapshots": "2000"}


def ready(cluster: Cluster) -> Cluster:
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    return cluster


def create_topics(cluster, *names):
    for name in names:
        topic = {"name": name, "num_partitions": 3, "replication_factor": 1}
        [created] = cluster.request(next(iter(cluster.nodes)), "CreateTopics", 7, topics=[topic]).topics
        assert created.error_code == 0, created


def snapshots(cluster, node_id):
    return [name for name in cluster.disks[node_id].list(QUORUM_LOG_DIRECTORY) if name.endswith(".checkpoint")]


def topics(cluster, node_id):
    return set(cluster.nodes[node_id].metadata.image.topics)


def test_every_node_takes_a_snapshot_after_enough_committed_bytes():
    cluster = ready(Cluster(3, **FEW_BYTES))
    create_topics(cluster, *(f"topic-{number}" for number in range(10)))
    cluster.run(1_000)
    assert all(snapshots(cluster, node_id) for node_id in cluster.nodes)


def test_snapshot_is_taken_after_the_maximal_interval():
    cluster = ready(Cluster(1, metadata_log_max_snapshot_interval_ms="5000"))
    assert not snapshots(cluster, 1)
    cluster.run(6_000)
    assert len(snapshots(cluster, 1)) == 1


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_restarted_node_loads_its_snapshot(clean):
    cluster = ready(Cluster(1, **FEW_BYTES, metadata_max_retention_bytes="0"))
    names = [f"topic-{number}" for number in range(20)]
    create_topics(cluster, *names)
    ids = set(cluster.nodes[1].metadata.image.topics_by_id)
    assert cluster.nodes[1].quorum.log.start_offset > 0, "the start of the log was not deleted"
    (cluster.stop if clean else cluster.kill)(1)
    cluster.start(1)
    assert topics(cluster, 1) == set(names)
    ready(cluster)
    assert set(cluster.nodes[1].metadata.image.topics_by_id) == ids


def test_only_the_newest_snapshot_is_retained_without_retention_bytes():
    cluster = ready(Cluster(1, **FEW_BYTES, metadata_max_retention_bytes="0"))
    create_topics(cluster, *(f"topic-{number}" for number in range(20)))
    assert len(snapshots(cluster, 1)) == 1


@pytest.mark.parametrize("interval_ms", [0, 1, 100], ids="snapshots every {} ms".format)
def test_node_that_was_down_for_long_fetches_the_snapshot_of_the_leader(interval_ms):
    interval = {"metadata_log_max_snapshot_interval_ms": str(interval_ms)}
    cluster = ready(Cluster(3, **FEW_BYTES, **interval, metadata_max_retention_bytes="0"))
    away = next(node_id for node_id in cluster.nodes if node_id != cluster.active_controller)
    cluster.kill(away)
    names = [f"topic-{number}" for number in range(20)]
    create_topics(cluster, *names)
    cluster.start(away)
    cluster.run_until(lambda: topics(cluster, away) == set(names))
    assert cluster.nodes[away].quorum.log.start_offset > 0
    ready(cluster)
    create_topics(cluster, "later")
    cluster.run_until(lambda: "later" in topics(cluster, away))
