"""Nodes of a cluster: quorum leader, active controller, equal images, forwarded requests."""

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from fixtures.clients.raw import encode_request
from reference_broker.core.apis import CONTROLLER_APIS
from reference_broker.simulation.cluster import CONTROLLER, PORTS
from tests.reference_broker.cluster import CLOSED, Cluster
from tests.reference_broker.requests import batch, fill, populated, request

METADATA_PARTITION = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}


def ready(cluster: Cluster) -> Cluster:
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    return cluster


@pytest.fixture
def cluster() -> Cluster:
    return ready(Cluster(3))


def create_topic(cluster, node_id, name, replication_factor=3):
    topic = {"name": name, "num_partitions": 2, "replication_factor": replication_factor}
    [created] = cluster.request(node_id, "CreateTopics", 7, topics=[topic]).topics
    assert created.error_code is ErrorCode.none, created
    return created.topic_id


def describe_quorum(cluster, node_id, **how):
    [topic] = cluster.request(node_id, "DescribeQuorum", 2, topics=[METADATA_PARTITION], **how).topics
    return topic.partitions[0]


def image_of(cluster, node_id):
    return cluster.nodes[node_id].metadata.image.records()


def other_than(cluster, node_id):
    return next(other for other in cluster.nodes if other != node_id)


def test_a_new_cluster_is_ready_at_once():
    cluster = ready(Cluster(3))
    assert cluster.now.monotonic_ms < 200, "no node waits for an election timeout"
    assert [node.controller.is_active for node in cluster.nodes.values()].count(True) == 1


def test_equal_scripts_give_equal_runs():
    runs = [ready(Cluster(3, seed=5)) for _ in range(2)]
    for cluster in runs:
        create_topic(cluster, 1, "orders")
        cluster.kill(cluster.active_controller)
        cluster.run_until(lambda cluster=cluster: cluster.active_controller)
    one, other = runs
    assert one.now == other.now
    assert {node: disk.files for node, disk in one.disks.items()} == {
        node: disk.files for node, disk in other.disks.items()
    }


def test_topics_are_created_through_any_node_and_applied_on_all(cluster):
    names = [f"through-{node_id}" for node_id in cluster.nodes]
    for node_id, name in zip(cluster.nodes, names, strict=True):
        create_topic(cluster, node_id, name)
    cluster.run(1_000)
    images = [image_of(cluster, node_id) for node_id in cluster.nodes]
    assert images[0] == images[1] == images[2]
    assert sorted(cluster.nodes[1].metadata.image.topics) == names


def test_a_record_with_acks_all_is_on_every_replica(cluster):
    create_topic(cluster, 1, "orders")
    cluster.run(2_000)
    leader = cluster.nodes[1].metadata.image.partition("orders", 0).leader
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch(b"a", b"b")}]}]
    [topic] = cluster.request(leader, "Produce", 12, acks=-1, timeout=1_000, topic_data=data).responses
    assert topic.partition_responses[0].error_code is ErrorCode.none
    assert [node.broker.replicas.get("orders", 0).log.log_end_offset for node in cluster.nodes.values()] == [2, 2, 2]


def test_the_next_controller_has_all_committed_metadata(cluster):
    first = cluster.active_controller
    topic_id = create_topic(cluster, first, "before")
    cluster.kill(first)
    second = cluster.run_until(lambda: cluster.active_controller)
    assert second != first
    create_topic(cluster, second, "after", replication_factor=2)
    cluster.start(first)
    ready(cluster)
    cluster.run(1_000)
    assert cluster.nodes[first].metadata.image.topics["before"].topic_id == topic_id
    assert "after" in cluster.nodes[first].metadata.image.topics


def test_requests_sent_without_a_controller_are_handled_by_the_next_one(cluster):
    first = cluster.active_controller
    cluster.kill(first)
    other = other_than(cluster, first)
    create_topic(cluster, other, "patient", replication_factor=2)
    assert cluster.active_controller != first


def test_forwarded_requests_time_out(cluster):
    for other in (2, 3):
        cluster.kill(other)
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    [created] = cluster.request(1, "CreateTopics", 7, topics=[topic], within_ms=120_000).topics
    assert created.error_code is ErrorCode.request_timed_out
    described = cluster.request(1, "DescribeQuorum", 2, topics=[METADATA_PARTITION], within_ms=120_000)
    assert described.error_code is ErrorCode.request_timed_out


@pytest.mark.parametrize("left", [1, 2, 3])
def test_the_last_node_of_a_cluster_stops_without_the_others(cluster, left):
    for other in {1, 2, 3} - {left}:
        cluster.kill(other)
    began = cluster.now.monotonic_ms
    cluster.stop(left)
    assert cluster.now.monotonic_ms - began < 4_000


def test_a_leader_that_stops_hands_over_without_a_timeout(cluster):
    first = cluster.active_controller
    stopped = cluster.now.monotonic_ms
    cluster.stop(first)
    cluster.run_until(lambda: cluster.active_controller)
    assert cluster.now.monotonic_ms - stopped < 1_000


def test_all_nodes_stop_in_a_bounded_time(cluster):
    began = cluster.now.monotonic_ms
    for node_id in cluster.nodes:
        cluster.begin_shutdown(node_id)
    cluster.run_until(lambda: not cluster.nodes)
    assert cluster.now.monotonic_ms - began < 5_000


def test_an_isolated_controller_is_replaced_and_returns(cluster):
    first = cluster.active_controller
    others = [node_id for node_id in cluster.nodes if node_id != first]
    for other in others:
        cluster.cut(first, other)
    cluster.run_until(lambda: any(cluster.nodes[other].controller.is_active for other in others))
    cluster.run(5_000)
    assert not cluster.nodes[first].controller.is_active, "a leader resigns if no voter fetches from it"
    cluster.heal()
    create_topic(cluster, others[0], "while-cut", replication_factor=2)
    cluster.run_until(lambda: "while-cut" in cluster.nodes[first].metadata.image.topics)


# Quorum


def test_the_quorum_is_described_by_its_leader_through_any_broker(cluster):
    for node_id in cluster.nodes:
        described = describe_quorum(cluster, node_id)
        assert (described.error_code, described.leader_id) == (ErrorCode.none, cluster.active_controller)
        assert [voter.replica_id for voter in described.current_voters] == [1, 2, 3]


def test_a_follower_returns_the_leader_of_the_quorum(cluster):
    follower = other_than(cluster, cluster.active_controller)
    described = describe_quorum(cluster, follower, listener=CONTROLLER)
    assert described.error_code is ErrorCode.not_leader_or_follower
    assert described.leader_id == cluster.active_controller


def test_other_partitions_have_no_quorum(cluster):
    elsewhere = {"topic_name": "orders", "partitions": [{"partition_index": 0}]}
    [topic] = cluster.request(1, "DescribeQuorum", 0, topics=[elsewhere]).topics
    assert topic.partitions[0].error_code is ErrorCode.unknown_topic_or_partition
    vote = cluster.request(1, "Vote", 2, listener=CONTROLLER, topics=[{"topic_name": "orders", "partitions": []}])
    assert vote.error_code is ErrorCode.invalid_request


def test_described_nodes_have_the_configured_controller_listener():
    listeners = "PLAINTEXT://b1.kafka.test:9092,REPLICATION://b1.kafka.test:9093,QUORUM://b1.kafka.test:9094"
    cluster = ready(Cluster(1, listeners=listeners, controller_listener_names="QUORUM"))
    [node] = cluster.request(1, "DescribeQuorum", 2, topics=[METADATA_PARTITION]).nodes
    assert [(each.name, each.host, each.port) for each in node.listeners] == [("QUORUM", "b1.kafka.test", 9094)]


# Separate roles


def test_brokers_that_are_not_voters_are_observers():
    roles = {1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"}
    cluster = ready(Cluster(5, roles=roles))
    create_topic(cluster, 4, "orders", replication_factor=2)
    cluster.run(1_000)
    assert set(cluster.nodes[5].metadata.image.brokers) == {4, 5}
    described = describe_quorum(cluster, 5)
    assert [voter.replica_id for voter in described.current_voters] == [1, 2, 3]
    assert [observer.replica_id for observer in described.observers] == [4, 5]
    cluster.kill(cluster.active_controller)
    create_topic(cluster, 5, "after", replication_factor=2)


# Envelopes


def in_envelope(cluster, node_id, entity):
    frame = encode_request(entity, 99, "a client")
    fields = {"request_data": frame, "request_principal": b"", "client_host_address": b"\x7f\x00\x00\x01"}
    return cluster.request(node_id, "Envelope", 0, listener=CONTROLLER, **fields)


def test_an_envelope_to_a_standby_controller_is_rejected(cluster):
    standby = other_than(cluster, cluster.active_controller)
    response = in_envelope(cluster, standby, request("CreateTopics", 7, topics=[]))
    assert (response.error_code, response.response_data) == (ErrorCode.not_controller, None)


def test_an_api_that_cannot_be_forwarded_is_rejected(cluster):
    response = in_envelope(cluster, cluster.active_controller, request("ApiVersions", 0))
    assert (response.error_code, response.response_data) == (ErrorCode.invalid_request, None)


def test_the_embedded_response_has_the_correlation_id_of_the_client(cluster):
    response = in_envelope(cluster, cluster.active_controller, request("CreateTopics", 7, topics=[]))
    assert response.error_code is ErrorCode.none
    assert int.from_bytes(response.response_data[:4], "big") == 99


def test_listeners_have_different_apis(cluster):
    apis = {
        listener: {entry.api_key for entry in cluster.request(1, "ApiVersions", 0, listener=listener).api_keys}
        for listener in PORTS
    }
    produce, vote, create_topics = 0, 52, 19
    assert produce in apis["PLAINTEXT"]
    assert produce not in apis[CONTROLLER]
    assert vote in apis[CONTROLLER]
    assert vote not in apis["PLAINTEXT"]
    assert all(create_topics in keys for keys in apis.values())


# The controller's listener


def test_controllers_are_found_through_any_of_them(cluster):
    for node_id in cluster.nodes:
        found = cluster.request(node_id, "DescribeCluster", 2, listener=CONTROLLER, endpoint_type=2)
        assert (found.error_code, found.controller_id) == (ErrorCode.none, cluster.active_controller)
        assert [(broker.broker_id, broker.port) for broker in found.brokers] == [
            (id_, PORTS[CONTROLLER]) for id_ in (1, 2, 3)
        ]
    wrong = cluster.request(1, "DescribeCluster", 1, listener=CONTROLLER, endpoint_type=1)
    assert wrong.error_code is ErrorCode.mismatched_endpoint_type


@pytest.mark.parametrize("api", ["BeginQuorumEpoch", "EndQuorumEpoch"])
def test_a_leader_that_is_not_a_voter_is_rejected(cluster, api):
    partition = {"partition_index": 0, "leader_id": 77, "leader_epoch": cluster.nodes[1].quorum.state.epoch + 1}
    topics = [{"topic_name": "__cluster_metadata", "partitions": [partition]}]
    before = cluster.nodes[1].quorum.state
    response = cluster.request(1, api, 1, listener=CONTROLLER, cluster_id="cluster", topics=topics)
    assert response.topics[0].partitions[0].error_code is ErrorCode.inconsistent_voter_set
    cluster.run(5_000)
    assert cluster.nodes[1].quorum.state is before


CONTROLLER_VERSIONS = [
    (api.key, version) for api in CONTROLLER_APIS.values() for version in range(api.min_version, api.max_version + 1)
]


@pytest.mark.parametrize("make", [lambda entity: fill(entity, {}), populated], ids=["empty", "full"])
def test_every_version_of_every_controller_api_gets_a_response(cluster, make):
    for api_key, version in CONTROLLER_VERSIONS:
        for node_id in cluster.nodes:
            response = cluster.request_entity(node_id, make(load_request_schema(api_key, version)), listener=CONTROLLER)
            assert response != CLOSED, (api_key, version, node_id)
            assert (response.__api_key__, response.__version__) == (api_key, version)
