"""Replicas of a partition on three disks: they are byte-identical, and Kafka's dump of them equals ours."""

from pathlib import Path

import pytest

from fixtures.clients.record_batch import Compression
from fixtures.targets.replica_logs import find_divergences
from fixtures.targets.stored_batches import read_segment, segment_files
from reference_broker.core.disk import MemoryDisk
from tests.reference_broker.cluster import Cluster
from tests.reference_broker.log.batches import idempotent, plain
from tests.reference_broker.scripted import START_MS

DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPIC = "orders"


def leader(cluster: Cluster) -> int:
    """Return the id of the leader, or 0 if there is no leader that runs."""
    partition = next(iter(cluster.nodes.values())).broker.image.partition(TOPIC, 0)
    return partition.leader if partition is not None and partition.leader in cluster.nodes else 0


def produce(cluster: Cluster, batch: bytes) -> None:
    """Produce to the leader until the batch is accepted."""
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    while True:
        to = cluster.run_until(lambda: leader(cluster))
        [topic] = cluster.request(to, "Produce", 12, acks=-1, timeout=5_000, topic_data=data).responses
        if topic.partition_responses[0].error_code == 0:
            return
        cluster.run(100)


def export(disk: MemoryDisk, data: Path) -> Path:
    for name, content in disk.files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(content)
    return data


@pytest.fixture(scope="module")
def data_directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the data directories of three nodes. Each was killed once, and the others got records meanwhile."""
    cluster = Cluster(3, min_insync_replicas="2")
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    configs = [{"name": "segment.bytes", "value": "1048576"}]
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 3, "configs": configs}
    assert cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=5_000).topics[0].error_code == 0
    sequence = 0
    for killed in (0, 1, 2, 3):
        if killed:
            cluster.kill(killed)
        for number in range(12):
            produce(cluster, plain(1 + number, START_MS + number, 40, Compression(number % 5)))
            produce(cluster, plain(8, START_MS - number, 6_000))
            produce(cluster, idempotent(7000, 0, sequence, 3, START_MS))
            sequence += 3
        if killed:
            cluster.start(killed)
            cluster.run_until(lambda killed=killed: cluster.nodes[killed].is_ready)
            cluster.run(5_000)
    for node_id in list(cluster.nodes):
        if len(cluster.nodes) > 1:
            cluster.stop(node_id)
        else:
            cluster.nodes[node_id].close()
    work_dir = tmp_path_factory.mktemp("replicas")
    return {str(node_id): export(disk, work_dir / str(node_id)) for node_id, disk in cluster.disks.items()}


def test_segments_are_byte_identical(data_directories):
    kept = [
        {path.name: path.read_bytes() for path in (data / f"{TOPIC}-0").iterdir() if path.name.endswith(".log")}
        for data in data_directories.values()
    ]
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) > 1
    assert not find_divergences(data_directories)


def test_epoch_checkpoints_match_the_batches(data_directories):
    for data in data_directories.values():
        batches = [batch for path in segment_files(data / f"{TOPIC}-0") for batch in read_segment(path)]
        first_offsets: dict[int, int] = {}
        for batch in batches:
            first_offsets.setdefault(batch.leader_epoch, batch.base_offset)
        lines = (data / f"{TOPIC}-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:]
        known = dict(map(int, line.split()) for line in lines)
        assert {epoch: start for epoch, start in known.items() if start <= batches[-1].last_offset} == first_offsets


@pytest.mark.java
def test_our_dump_of_a_replica_equals_kafkas(kafka_tool, data_directories):
    segments = segment_files(data_directories["3"] / f"{TOPIC}-0")
    printed = kafka_tool(DUMP, ["--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments))])
    ours = [batch.as_dumped() for segment in segments for batch in read_segment(segment)]
    assert [line for line in printed.splitlines() if line.startswith("baseOffset: ")] == ours
    assert len(ours) >= 144
    assert len({line.split("partitionLeaderEpoch: ")[1].split()[0] for line in ours}) > 1
