"""Clusters of processes over real sockets."""

import re
import time

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients.raw import RawClient
from tests.reference_broker.requests import batch, request
from tests.reference_broker.server.processes import CLUSTER_ID, Processes

pytestmark = pytest.mark.sampled(2)

COMBINED = dict.fromkeys((1, 2, 3), "broker,controller")
SEPARATE = {1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"}
METADATA_PARTITION = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}


def send_request(cluster, node, api, version, **fields):
    with RawClient(*cluster.address(node), timeout_s=30) as client:
        return client.request(request(api, version, **fields))


def create_topic(cluster, node, name, replication_factor):
    topic = {"name": name, "num_partitions": 1, "replication_factor": replication_factor}
    [created] = send_request(cluster, node, "CreateTopics", 7, timeout=20_000, topics=[topic]).topics
    assert created.error_code is ErrorCode.none, created


def produce(cluster, nodes, topic):
    """Produce with acks=all to one node after the other until the leader accepts; return the base offset."""
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(b"a record", timestamp_ms=0)}]}]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for node in nodes:
            [found] = send_request(cluster, node, "Produce", 12, acks=-1, timeout=20_000, topic_data=data).responses
            if found.partition_responses[0].error_code is ErrorCode.none:
                return found.partition_responses[0].base_offset
        time.sleep(0.05)
    raise AssertionError("no node accepted the record")


def describe_quorum(cluster, node):
    [topic] = send_request(cluster, node, "DescribeQuorum", 2, topics=[METADATA_PARTITION]).topics
    return topic.partitions[0]


@pytest.mark.parametrize("roles", [COMBINED, SEPARATE], ids=["combined", "separate"])
def test_cluster_survives_the_loss_of_its_controller(tmp_path, roles):
    with Processes(tmp_path, roles) as cluster:
        brokers = [node for node, role in roles.items() if "broker" in role]
        create_topic(cluster, brokers[0], "before", replication_factor=2)
        assert produce(cluster, brokers, "before") == 0
        first = describe_quorum(cluster, brokers[0]).leader_id
        cluster.kill(first)
        alive = [node for node in brokers if node != first]
        create_topic(cluster, alive[0], "after", replication_factor=1)
        described = describe_quorum(cluster, alive[0])
        assert described.leader_id != first
        assert described.leader_epoch > 1


def test_all_nodes_shut_down_cleanly_at_the_same_time(tmp_path):
    with Processes(tmp_path, COMBINED) as cluster:
        create_topic(cluster, 1, "orders", replication_factor=3)
        produce(cluster, COMBINED, "orders")
        assert cluster.stop() == dict.fromkeys(COMBINED, (0, ""))
    assert all((tmp_path / f"node-{node}/.kafka_cleanshutdown").exists() for node in COMBINED)


def test_second_signal_ends_the_node_at_once(tmp_path):
    with Processes(tmp_path, COMBINED) as cluster:
        cluster.kill(1)
        cluster.kill(2)
        assert cluster.terminate(3, times=2) == 0
    assert (tmp_path / "node-3/.kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("node_id", "cluster_id", "error"),
    [(2, CLUSTER_ID, "DUPLICATE_BROKER_REGISTRATION"), (3, "d" * 22, "INCONSISTENT_CLUSTER_ID")],
)
def test_broker_whose_registration_is_rejected_logs_the_error_and_ends(tmp_path, node_id, cluster_id, error):
    with Processes(tmp_path, {1: "controller", 2: "broker"}) as cluster:
        limit = "--set=initial.broker.registration.timeout.ms=3000"
        ended = cluster.run_rejected_broker(9, node_id, cluster_id, limit)
        assert cluster.stop() == {1: (0, ""), 2: (0, "")}
    assert ended.stderr.count("\n") == 2, ended.stderr
    log, end = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (3, "")
    assert error in log
    assert end.startswith(f"error: broker {node_id} could not register within 3000 ms")


@pytest.mark.java
def test_kafkas_tool_describes_the_quorum(tmp_path, kafka_tool):
    with Processes(tmp_path, SEPARATE) as cluster:
        host, port = cluster.address(4)
        tool = "org.apache.kafka.tools.MetadataQuorumCommand"
        for how in (
            ["--bootstrap-server", f"{host}:{port}"],
            ["--bootstrap-controller", cluster.controller_address(2)],
        ):
            status = kafka_tool(tool, [*how, "describe", "--status"])
            assert re.search(r"^LeaderId: +[123]$", status, re.MULTILINE)
            assert status.count("CONTROLLER://") == 3
            assert [observer in status for observer in ('"id": 4', '"id": 5')] == [True, True]
        replication = kafka_tool(tool, ["--bootstrap-server", f"{host}:{port}", "describe", "--replication"])
        assert [replication.count(kind) for kind in ("Leader", "Follower", "Observer")] == [1, 2, 2]
