"""Three nodes that are killed, stopped, started, cut off and written to, in any order, in virtual time.

However it went: no epoch of the quorum has two active controllers, what was acknowledged with acks=all is read at its
offset in the end, and when all is well again so is the cluster: every broker serves, every ISR is full, and all nodes
have the same image. A seed is a story; the same one is told again each time.
"""

import random
from typing import Any

import pytest

from reference_broker.protocol.records import decode_batches
from tests.reference_broker.cluster import CLOSED, Cluster
from tests.reference_broker.scripted import batch

PARTITIONS = (0, 1)
STEPS = 80
PAUSES_MS = (1, 10, 100, 700, 2_000)
SOON = {
    "broker_session_timeout_ms": "3000",
    "broker_heartbeat_interval_ms": "500",
    "replica_lag_time_max_ms": "1500",
    "min_insync_replicas": "2",
}


class Fate:
    """A cluster, what befalls it, and what it has acknowledged: partition, offset and value."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster = Cluster(3, seed=seed, **SOON)
        self.cluster.run_until(self.is_serving)
        topic = {"name": "orders", "num_partitions": len(PARTITIONS), "replication_factor": 3}
        assert self.cluster.ask(1, "CreateTopics", 7, topics=[topic], timeout=5_000).topics[0].error_code == 0
        self.down: int | None = None
        self.written = 0
        self.acknowledged: list[tuple[int, int, bytes]] = []
        self._asked: list[tuple[int, bytes, list[Any]]] = []
        self._leaders: dict[int, int] = {}

    def step(self) -> None:
        """One thing happens, and some time passes."""
        ways = {self.produce: 10, self.kill: 2, self.stop: 1, self.start: 4, self.cut: 1, self.heal: 3}
        [way] = self.random.choices(list(ways), weights=list(ways.values()))
        way()
        self.cluster.run(self.random.choice(PAUSES_MS))
        self.collect()
        self.check_controllers()

    def produce(self) -> None:
        """Ask any node, be it the leader or not, to write with acks=all."""
        node_id, partition = self.random.choice(list(self.cluster.nodes)), self.random.choice(PARTITIONS)
        self.written += 1
        value = b"%d" % self.written
        data = [{"name": "orders", "partition_data": [{"index": partition, "records": batch(value)}]}]
        answers = self.cluster.asking(node_id, "Produce", 12, acks=-1, timeout=2_000, topic_data=data)
        self._asked.append((partition, value, answers))

    def kill(self) -> None:
        if self.down is None:
            self.down = self.random.choice(list(self.cluster.nodes))
            self.cluster.kill(self.down)

    def stop(self) -> None:
        if self.down is None:
            self.down = self.random.choice(list(self.cluster.nodes))
            self.cluster.stop(self.down)

    def start(self) -> None:
        if self.down is not None:
            self.cluster.start(self.down)
            self.down = None

    def cut(self) -> None:
        self.cluster.cut(*self.random.sample(range(1, 4), 2))

    def heal(self) -> None:
        self.cluster.heal()

    def collect(self) -> None:
        """Note what was acknowledged meanwhile."""
        waiting = []
        for partition, value, answers in self._asked:
            if not answers:
                waiting.append((partition, value, answers))
            elif answers[0] != CLOSED:
                [answer] = answers[0].responses[0].partition_responses
                if answer.error_code == 0:
                    self.acknowledged.append((partition, answer.base_offset, value))
        self._asked = waiting

    def check_controllers(self) -> None:
        for node_id, node in self.cluster.nodes.items():
            if node.controller.is_active:
                epoch = node.quorum.state.epoch
                assert self._leaders.setdefault(epoch, node_id) == node_id, f"two controllers in epoch {epoch}"

    # In the end

    def is_serving(self) -> bool:
        return all(node.is_ready for node in self.cluster.nodes.values())

    def is_whole(self) -> bool:
        images = [node.metadata.image for node in self.cluster.nodes.values()]
        return all(len(part.isr) == 3 and part.leader > 0 for part in images[0].partitions()) and all(
            image.records() == images[0].records() for image in images
        )

    def values(self, partition: int) -> dict[int, bytes | None]:
        """What the leader has committed, by offset."""
        leader = self.cluster.nodes[1].metadata.image.partition("orders", partition).leader
        found: dict[int, bytes | None] = {}
        while True:
            asked = {"partition": partition, "fetch_offset": len(found), "current_leader_epoch": -1}
            topics = [{"topic": "orders", "partitions": [{**asked, "partition_max_bytes": 2**20}]}]
            answer = self.cluster.ask(leader, "Fetch", 12, max_bytes=2**20, topics=topics)
            [data] = answer.responses[0].partitions
            assert data.error_code == 0
            if not data.records:
                return found
            found |= {offset: record.value for offset, record in decode_batches(bytes(data.records))}


@pytest.mark.parametrize("seed", range(4))
def test_any_fate_of_a_cluster(seed):
    fate = Fate(seed)
    for _ in range(STEPS):
        fate.step()
    fate.heal()
    fate.start()
    fate.cluster.run_until(fate.is_serving, within_ms=60_000)
    fate.cluster.run_until(fate.is_whole, within_ms=60_000)
    fate.cluster.run(5_000)
    fate.collect()
    assert fate.acknowledged
    committed = {partition: fate.values(partition) for partition in PARTITIONS}
    for partition, offset, value in fate.acknowledged:
        assert committed[partition].get(offset) == value
