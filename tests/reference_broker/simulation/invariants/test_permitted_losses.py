"""Checks of acknowledged records; losses that Kafka permits are not violations."""

from typing import Any

import pytest

from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import REPLICATION, SimulatedCluster
from reference_broker.simulation.invariants import Invariants, InvariantViolation, converged
from reference_broker.simulation.links import Condition, Cut, Link
from tests.reference_broker.requests import batch, request
from tests.reference_broker.simulation.invariants.storm import PROPERTIES, Client

CRC = slice(17, 21)


class CheckedCluster:
    """Three nodes and the topic `orders` with one partition, with all invariants.

    :param configs: configurations of the topic, with `_` instead of `.` in their names.
    """

    def __init__(self, **configs: str) -> None:
        self.cluster = SimulatedCluster(3, properties=PROPERTIES | {"min.insync.replicas": "1"})
        self.invariants = Invariants(self.cluster)
        assert self.cluster.await_ready()
        properties = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
        topic = {"name": "orders", "num_partitions": 1, "replication_factor": 3, "configs": properties}
        response = self.send(1, request("CreateTopics", 7, topics=[topic], timeout=5_000))
        assert response.topics[0].error_code == 0, response
        self.run_until(lambda: len({node.metadata.offset for node in self.cluster.nodes.values()}) == 1)
        self.sent = 0

    @property
    def partition(self) -> Any:
        """The state of the partition in the newest metadata of a running node."""
        newest = max(self.cluster.nodes.values(), key=lambda node: node.metadata.offset)
        return newest.metadata.image.partition("orders", 0)

    @property
    def ledger(self) -> Any:
        """The committed records of the partition, as the invariants know them."""
        return next(iter(self.invariants.partitions.ledgers.values()))

    def send(self, node_id: int, entity: Any) -> Any:
        responses: list[Any] = []
        Client(self.cluster).send(node_id, entity, responses.append)
        self.run_until(lambda: responses)
        return responses[0]

    def run_until(self, condition: Any, within_ms: int = 60_000) -> None:
        end_ms = self.cluster.scheduler.now_ms + within_ms
        assert self.cluster.scheduler.run_until(condition, end_ms=end_ms)

    def produce(self, acks: int = -1) -> tuple[int, int]:
        """Produce a batch, which must be acknowledged. Return its offset and checksum."""
        self.sent += 1
        records = batch(b"%d" % self.sent * 100, timestamp_ms=WALL_START_MS + self.cluster.scheduler.now_ms)
        data = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
        response = self.send(self.partition.leader, request("Produce", 9, acks=acks, timeout=1_000, topic_data=data))
        produced = response.responses[0].partition_responses[0]
        assert produced.error_code == 0, produced
        return produced.base_offset, int.from_bytes(records[CRC])

    def isolate_followers(self) -> int:
        """Isolate the followers from the leader until it is the only member of the ISR. Return its id."""
        leader = self.partition.leader
        for follower in sorted({1, 2, 3} - {leader}):
            for source, destination in ((follower, leader), (leader, follower)):
                link = Link(str(source), str(destination), listener=REPLICATION)
                self.cluster.network.set(link, Condition(cut=Cut.LOSE))
        self.produce(acks=1)  # the followers lack this record, so they leave the ISR
        self.await_isr(1)
        return int(leader)

    def await_isr(self, size: int) -> None:
        """Advance the time until the ISR has this size."""
        self.run_until(lambda: self.partition is not None and len(self.partition.isr) == size)

    def await_convergence(self) -> None:
        """Advance the time until the cluster has converged, and check the invariants of an idle cluster."""
        self.run_until(lambda: converged(self.cluster) is None)
        self.invariants.check_idle()


def test_an_acknowledgement_is_compared_with_the_log():
    checked = CheckedCluster()
    offset, crc = checked.produce()
    checked.invariants.acknowledged("orders", 0, offset, crc=crc, epoch=0)
    for wrong in ({"crc": crc ^ 1}, {"epoch": 1}):
        with pytest.raises(InvariantViolation, match="acknowledged-is-committed"):
            checked.invariants.acknowledged("orders", 0, offset, **wrong)
    with pytest.raises(InvariantViolation, match="acknowledged-is-committed"):
        checked.invariants.acknowledged("orders", 0, offset + 1)
    with pytest.raises(InvariantViolation, match="acknowledged-is-committed"):
        checked.invariants.acknowledged("nowhere", 0, 0)
    with pytest.raises(InvariantViolation, match="group-offset-stays"):
        checked.invariants.committed_group_offset("readers", "orders", 0, 7)


def test_the_only_member_of_the_isr_may_lose_records_in_a_power_cut():
    """Kafka 4.3.1 may lose them too, unless eligible leader replicas are enabled (KIP-966)."""
    checked = CheckedCluster()
    checked.produce()
    leader = checked.isolate_followers()
    offsets = [checked.produce() for _ in range(5)]
    before = checked.ledger.committed_end
    checked.cluster.cut_power(leader)
    checked.cluster.network.heal_all()
    checked.cluster.scheduler.run(1_000)
    checked.cluster.start(leader)
    checked.await_convergence()
    for offset, crc in offsets:
        checked.invariants.acknowledged("orders", 0, offset, crc=crc)
    assert checked.ledger.given_up
    assert checked.ledger.committed_end < before


def test_an_unclean_election_may_lose_records():
    checked = CheckedCluster(unclean_leader_election_enable="true")
    checked.produce()
    leader = checked.isolate_followers()
    offset, crc = checked.produce()
    checked.cluster.kill(leader)
    checked.run_until(lambda: checked.partition.leader not in {leader, -1})
    checked.cluster.network.heal_all()
    checked.cluster.start(leader)
    checked.await_convergence()
    assert checked.invariants.metadata.unclean_elections == 1
    checked.invariants.acknowledged("orders", 0, offset, crc=crc)
    assert checked.ledger.given_up


def test_invariants_are_void_if_a_majority_of_the_quorum_has_lost_its_disks():
    checked = CheckedCluster()
    checked.produce()
    for node_id in (1, 2):
        checked.cluster.kill(node_id)
        checked.cluster.wipe(node_id)
    checked.cluster.kill(3)
    checked.cluster.start(1)
    checked.cluster.start(2)
    checked.cluster.scheduler.run(20_000)
    assert checked.invariants.is_void
    checked.invariants.acknowledged("orders", 0, 10_000)  # such a record never existed


def test_a_cluster_that_has_not_converged_has_a_reason():
    checked = CheckedCluster()
    checked.produce()
    checked.await_convergence()
    leader = checked.partition.leader
    follower = min({1, 2, 3} - {leader})
    checked.cluster.kill(follower)
    assert f"node {follower} does not run" in str(converged(checked.cluster))
    checked.await_isr(2)
    checked.run_until(lambda: converged(checked.cluster, without={follower}) is None)
    checked.cluster.start(follower)
    assert f"node {follower} is not ready" in str(converged(checked.cluster))
    checked.run_until(lambda: checked.cluster.nodes[follower].is_ready)
    checked.await_convergence()
