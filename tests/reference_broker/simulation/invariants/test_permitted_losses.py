"""Permitted losses are not violations, and acknowledgements are compared with the log."""

from typing import Any

import pytest

from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import REPLICATION, SimulatedCluster
from reference_broker.simulation.invariants import Invariants, InvariantViolation, converged
from reference_broker.simulation.links import Condition, Cut, Link
from tests.reference_broker.requests import batch, request
from tests.reference_broker.simulation.invariants.storm import PROPERTIES, Client

CRC = slice(17, 21)


class Run:
    """Three nodes and a topic, with all invariants."""

    def __init__(self, seed: int = 0, **configs: str) -> None:
        self.cluster = SimulatedCluster(3, seed=seed, properties=PROPERTIES | {"min.insync.replicas": "1"})
        self.invariants = Invariants(self.cluster)
        assert self.cluster.await_ready()
        written = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
        topic = {"name": "orders", "num_partitions": 1, "replication_factor": 3, "configs": written}
        response = self.send(1, request("CreateTopics", 7, topics=[topic], timeout=5_000))
        assert response.topics[0].error_code == 0, response
        self.run_until(lambda: len({node.metadata.offset for node in self.cluster.nodes.values()}) == 1)
        self.sent = 0

    @property
    def partition(self) -> Any:
        newest = max(self.cluster.nodes.values(), key=lambda node: node.metadata.offset)
        return newest.metadata.image.partition("orders", 0)

    @property
    def ledger(self) -> Any:
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
        """Produce a batch, and return its offset and checksum."""
        self.sent += 1
        records = batch(b"%d" % self.sent * 100, timestamp_ms=WALL_START_MS + self.cluster.scheduler.now_ms)
        data = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
        response = self.send(self.partition.leader, request("Produce", 9, acks=acks, timeout=1_000, topic_data=data))
        produced = response.responses[0].partition_responses[0]
        assert produced.error_code == 0, produced
        return produced.base_offset, int.from_bytes(records[CRC])

    def isolate_followers(self) -> int:
        """Isolate the followers, and append a record, so that the leader becomes the only member of the ISR."""
        leader = self.partition.leader
        for follower in sorted({1, 2, 3} - {leader}):
            for source, destination in ((follower, leader), (leader, follower)):
                link = Link(str(source), str(destination), listener=REPLICATION)
                self.cluster.network.set(link, Condition(cut=Cut.LOSE))
        self.produce(acks=1)
        self.await_isr(1)
        return int(leader)

    def await_isr(self, size: int) -> None:
        self.run_until(lambda: self.partition is not None and len(self.partition.isr) == size)

    def await_convergence(self) -> None:
        self.run_until(lambda: converged(self.cluster) is None)
        self.invariants.check_idle()


def test_an_acknowledgement_is_compared_with_the_log():
    run = Run()
    offset, crc = run.produce()
    run.invariants.acknowledged("orders", 0, offset, crc=crc, epoch=0)
    for wrong in ({"crc": crc ^ 1}, {"epoch": 1}):
        with pytest.raises(InvariantViolation, match="acknowledged-is-committed"):
            run.invariants.acknowledged("orders", 0, offset, **wrong)
    with pytest.raises(InvariantViolation, match="acknowledged-is-committed"):
        run.invariants.acknowledged("orders", 0, offset + 1)
    with pytest.raises(InvariantViolation, match="acknowledged-is-committed"):
        run.invariants.acknowledged("nowhere", 0, 0)
    with pytest.raises(InvariantViolation, match="group-offset-stays"):
        run.invariants.committed_group_offset("readers", "orders", 0, 7)


def test_the_last_member_of_the_isr_may_lose_records_with_its_disk():
    """Two of three replicas lag, and the power of the third is cut. Without KIP-966, Kafka 4.3.1 loses records too."""
    run = Run()
    run.produce()
    leader = run.isolate_followers()
    offsets = [run.produce() for _ in range(5)]
    before = run.ledger.committed_end
    run.cluster.cut_power(leader)
    run.cluster.network.heal_all()
    run.cluster.scheduler.run(1_000)
    run.cluster.start(leader)
    run.await_convergence()
    for offset, crc in offsets:
        run.invariants.acknowledged("orders", 0, offset, crc=crc)
    assert run.ledger.given_up
    assert run.ledger.committed_end < before


def test_an_unclean_election_may_lose_records():
    run = Run(unclean_leader_election_enable="true")
    run.produce()
    leader = run.isolate_followers()
    offset, crc = run.produce()
    run.cluster.kill(leader)
    run.run_until(lambda: run.partition.leader not in {leader, -1})
    run.cluster.network.heal_all()
    run.cluster.start(leader)
    run.await_convergence()
    assert run.invariants.metadata.unclean_elections == 1
    run.invariants.acknowledged("orders", 0, offset, crc=crc)
    assert run.ledger.given_up


def test_a_quorum_whose_majority_lost_its_disks_is_no_longer_judged():
    run = Run()
    run.produce()
    for node_id in (1, 2):
        run.cluster.kill(node_id)
        run.cluster.wipe(node_id)
    run.cluster.kill(3)
    run.cluster.start(1)
    run.cluster.start(2)
    run.cluster.scheduler.run(20_000)
    assert run.invariants.is_void
    run.invariants.acknowledged("orders", 0, 10_000)


def test_the_reason_why_a_cluster_has_not_converged():
    run = Run()
    run.produce()
    run.await_convergence()
    leader = run.partition.leader
    follower = min({1, 2, 3} - {leader})
    run.cluster.kill(follower)
    assert f"node {follower} does not run" in str(converged(run.cluster))
    run.await_isr(2)
    run.run_until(lambda: converged(run.cluster, without={follower}) is None)
    run.cluster.start(follower)
    assert f"node {follower} is not ready" in str(converged(run.cluster))
    run.run_until(lambda: run.cluster.nodes[follower].is_ready)
    run.await_convergence()
