"""Power failures of single nodes: the unflushed data of the node are lost, but no acknowledged record.

A power failure occurs only while all replicas are in sync. Otherwise acknowledged records may be lost, because acks=all
does not include an fsync.
"""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from fixtures.clients.record_batch import decode_batches
from fixtures.targets.replica_logs import find_divergences
from tests.reference_broker.cluster import Cluster
from tests.reference_broker.log.batches import plain
from tests.reference_broker.scripted import START_MS

TOPIC, PARTITION = "orders", "orders-0"
PROPERTIES = {
    "min_insync_replicas": "2",
    "replica_lag_time_max_ms": "2000",
    "broker_session_timeout_ms": "3000",
}


class Scenario:
    """Three nodes, a partition with three replicas, and the acknowledged values by base offset."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.acknowledged: dict[int, bytes] = {}
        self.cluster = Cluster(3, seed=seed, **PROPERTIES)
        self.await_all_ready()
        configs = [{"name": "segment.bytes", "value": "1048576"}]
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 3, "configs": configs}
        assert self.cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=5_000).topics[0].error_code == 0

    def partition(self) -> Any:
        """Return the state of the partition on some node, or None if no node has it."""
        known = (node.broker.image.partition(TOPIC, 0) for node in self.cluster.nodes.values())
        return next((found for found in known if found is not None), None)

    def leader(self) -> int:
        """Return the id of the leader, or 0 if there is no leader that runs."""
        found = self.partition()
        return found.leader if found is not None and found.leader in self.cluster.nodes else 0

    def await_all_ready(self) -> None:
        nodes = self.cluster.nodes
        self.cluster.run_until(lambda: all(node.is_ready for node in nodes.values()), within_ms=60_000)

    def send(self) -> list[Any]:
        """Send a batch of random size to the leader; return a list to which the response is appended."""
        records = plain(1, START_MS, size=self.random.randrange(10, 5_000))
        data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
        to = self.cluster.run_until(self.leader)
        responses = self.cluster.start_request(to, "Produce", 12, acks=-1, timeout=3_000, topic_data=data)
        self._sent = next(iter(decode_batches(records))).records[0].value
        return responses

    def produce(self) -> bool:
        """Send a batch and wait for its response. Return whether it was acknowledged."""
        responses = self.send()
        self.cluster.run_until(lambda: responses, within_ms=4_000, is_required=False)
        if not responses or isinstance(responses[0], str):
            return False
        [partition] = responses[0].responses[0].partition_responses
        if partition.error_code == 0:
            self.acknowledged[partition.base_offset] = self._sent
        return partition.error_code == 0

    def cut_power(self) -> None:
        """Cut the power of a node under load and start it again later; the other nodes continue."""
        cluster, node_id = self.cluster, self.random.choice((1, 2, 3))
        self.send()
        cluster.run(self.random.randrange(30))
        cluster.cut_power(node_id)
        cluster.run(self.random.choice((0, 50, 1_000, 4_000)))
        for _ in range(self.random.randrange(4)):
            self.produce()
        cluster.start(node_id)
        self.await_all_ready()
        while not self.produce():
            cluster.run(200)
        cluster.run_until(lambda: len(self.partition().isr) == 3, within_ms=60_000)

    def export(self, directory: Path) -> dict[str, Path]:
        """Write the simulated disks to data directories; return these by node."""
        for node_id, disk in self.cluster.disks.items():
            for name, content in disk.files.items():
                path = directory / str(node_id) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return {str(node_id): directory / str(node_id) for node_id in self.cluster.disks}


@pytest.mark.parametrize("seed", range(4))
def test_power_failures_lose_no_acknowledged_record(seed, tmp_path):
    scenario = Scenario(seed)
    for _ in range(6):
        for _ in range(scenario.random.randrange(1, 8)):
            scenario.produce()
        scenario.cut_power()
    scenario.cluster.run(5_000)
    directories = scenario.export(tmp_path)
    assert not find_divergences(directories)
    segments = sorted((directories["1"] / PARTITION).glob("*.log"))
    batches = [batch for path in segments for batch in decode_batches(path.read_bytes())]
    kept = {batch.base_offset: batch.records[0].value for batch in batches}
    assert {offset: kept.get(offset) for offset in scenario.acknowledged} == scenario.acknowledged
    assert len(scenario.acknowledged) > 15
