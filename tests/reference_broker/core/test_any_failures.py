"""Acknowledged records are on all replicas, once and in order, after any sequence of failures.

Events: nodes are killed, stopped and started; links are cut and healed; records are produced with acks=all to any node;
time passes. No epoch of the quorum has two active controllers. At the end all faults are healed, and all replicas and
images must be equal.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from fixtures.clients.record_batch import decode_batches
from tests.reference_broker.cluster import CLOSED, Cluster
from tests.reference_broker.requests import batch, fetch_fields, request

NODES = (1, 2, 3)
SETTINGS = {
    "min_insync_replicas": "2",
    "replica_lag_time_max_ms": "1500",
    "replica_fetch_backoff_ms": "100",
    "broker_session_timeout_ms": "3000",
    "broker_heartbeat_interval_ms": "500",
    "initial_broker_registration_timeout_ms": "600000",
}

nodes = st.sampled_from(NODES)
events = st.one_of(
    st.tuples(st.just("kill"), nodes),
    st.tuples(st.just("stop"), nodes),
    st.tuples(st.just("start"), nodes),
    st.tuples(st.just("cut"), nodes, nodes),
    st.tuples(st.just("heal")),
    st.tuples(st.just("produce"), nodes),
    st.tuples(st.just("produce"), nodes),
    st.tuples(st.just("run"), st.sampled_from((5, 50, 500, 5_000))),
)


@dataclass
class History:
    """A cluster, and the requests and responses of its client.

    :ivar sent: the value of each produced record, and the responses to its request: none or one.
    :ivar controllers: the active controller by epoch.
    """

    cluster: Cluster
    sent: list[tuple[bytes, list[Any]]] = field(default_factory=list)
    controllers: dict[int, int] = field(default_factory=dict)

    def apply(self, event: tuple[Any, ...]) -> None:
        match event:
            case "kill", node if node in self.cluster.nodes:
                self.cluster.kill(node)
            case "stop", node if node in self.cluster.nodes:
                self.cluster.stop(node)
            case "start", node if node not in self.cluster.nodes:
                self.cluster.start(node)
            case "cut", one, other if one != other:
                self.cluster.cut(one, other)
            case ("heal",):
                self.cluster.heal()
            case "produce", node if node in self.cluster.nodes:
                self.produce(node)
            case "run", for_ms:
                self.cluster.run(for_ms)
        self.cluster.run(3)
        for node_id, node in self.cluster.nodes.items():
            if node.controller.is_active:
                epoch = node.quorum.state.epoch
                assert self.controllers.setdefault(epoch, node_id) == node_id, f"two controllers in epoch {epoch}"

    def produce(self, node: int) -> None:
        value = b"record %d" % len(self.sent)
        records = batch(value, timestamp_ms=self.cluster.now.wall_ms)
        data = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
        entity = request("Produce", 12, acks=-1, timeout=1_500, topic_data=data)
        self.sent.append((value, self.cluster.start_request_entity(node, entity)))

    def acknowledged(self) -> dict[bytes, int]:
        """Return the offsets of acknowledged records by value."""
        offsets = {}
        for value, responses in self.sent:
            if responses and responses[0] != CLOSED:
                response = responses[0].responses[0].partition_responses[0]
                if response.error_code is ErrorCode.none:
                    offsets[value] = response.base_offset
        return offsets

    def heal(self) -> None:
        """End all faults, advance the time until all replicas are in sync, and then by five seconds more."""
        self.cluster.heal()
        for node in NODES:
            if node not in self.cluster.nodes:
                self.cluster.start(node)
        self.cluster.run_until(self.is_whole, within_ms=60_000)
        self.cluster.run(5_000)

    def is_whole(self) -> bool:
        """Whether all nodes are ready, and all replicas are in sync."""
        record = next(iter(self.cluster.nodes.values())).metadata.image.partition("orders", 0)
        is_ready = all(node.is_ready for node in self.cluster.nodes.values())
        return is_ready and record is not None and sorted(record.isr) == list(NODES)

    def log_of(self, node: int) -> dict[int, bytes]:
        """Return the values of a replica below its high watermark, by offset."""
        partition = self.cluster.nodes[node].broker.replicas.get("orders", 0)
        data = partition.log.read(0, 2**20, partition.high_watermark)
        return {record.offset: record.value for found in decode_batches(data) for record in found.records}


def started(seed: int) -> History:
    cluster = Cluster(3, seed=seed, **SETTINGS)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 3}
    [created] = cluster.request(1, "CreateTopics", 7, topics=[topic]).topics
    assert created.error_code is ErrorCode.none
    cluster.run(1_000)
    return History(cluster)


@settings(max_examples=15)
@given(seed=st.integers(0, 1_000), script=st.lists(events, max_size=25))
def test_acknowledged_records_are_on_all_replicas(seed, script):
    history = started(seed)
    for event in script:
        history.apply(event)
    history.heal()
    logs = {node: history.log_of(node) for node in NODES}
    assert logs[1] == logs[2] == logs[3]
    for value, offset in history.acknowledged().items():
        assert logs[1].get(offset) == value, (value, offset)
    images = {node: history.cluster.nodes[node].metadata.image.records() for node in NODES}
    assert images[1] == images[2] == images[3]
    assert [node.controller.is_active for node in history.cluster.nodes.values()].count(True) == 1
    found = history.cluster.request(leader_of(history), "Fetch", 12, **fetch_fields(0))
    assert found.responses[0].partitions[0].error_code is ErrorCode.none


def leader_of(history: History) -> int:
    return history.cluster.nodes[1].metadata.image.partition("orders", 0).leader
