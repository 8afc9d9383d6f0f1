"""Administration of a cluster of three nodes, and the metadata that clients get."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from reference_broker.simulation.cluster import CLIENT, CONTROLLER, PORTS, REPLICATION
from tests.reference_broker.cluster import Cluster

SESSION_MS = 6_000
TIMEOUT_MS = 60_000


def started(size=3, **properties):
    """Start a cluster and wait until all its brokers are unfenced."""
    cluster = Cluster(size, broker_session_timeout_ms=str(SESSION_MS), **properties)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    cluster.run_until(lambda: len(cluster.request(1, "DescribeCluster", 1, endpoint_type=1).brokers) == size)
    return cluster


@pytest.fixture(scope="module")
def steady():
    """Return a cluster with two topics that tests do not change."""
    cluster = started()
    create(cluster, "orders", [(1, 2), (2, 3), (3, 1)])
    create(cluster, "returns", [(1, 2, 3)] * 4)
    return cluster


def kill(cluster, node_id):
    """Kill a node and wait until its broker is fenced."""
    cluster.kill(node_id)
    others = sorted(cluster.nodes)
    cluster.run_until(lambda: [node.node_id for node in metadata(cluster).brokers] == others, within_ms=TIMEOUT_MS)


def create(cluster, name, assignments, node_id=1):
    """Create a topic, and wait until all brokers have applied it.

    :param assignments: the replicas of each partition.
    """
    placed = [{"partition_index": index, "broker_ids": replicas} for index, replicas in enumerate(assignments)]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": placed}
    [result] = cluster.request(node_id, "CreateTopics", 7, topics=[topic]).topics
    assert result.error_code == ErrorCode.none
    cluster.run(100)


def metadata(cluster, *names, node_id=1, version=12, **fields):
    topics = [{"name": name} for name in names]
    return cluster.request(node_id, "Metadata", version, topics=topics, **fields)


def partitions(cluster, name, node_id=1, **fields):
    """Return leader, replicas, ISR and offline replicas of each partition, such as `1 31 1 3`; `-` is an empty list."""
    [topic] = metadata(cluster, name, node_id=node_id, **fields).topics
    return [
        " ".join(
            str(part.leader_id) if nodes is None else "".join(map(str, nodes)) or "-"
            for nodes in (None, part.replica_nodes, part.isr_nodes, part.offline_replicas)
        )
        for part in topic.partitions
    ]


# Brokers


@pytest.mark.parametrize("listener", [CLIENT, REPLICATION])
def test_brokers_have_their_endpoints_on_the_listener(steady, listener):
    expected = [(node, f"b{node}.kafka.test", PORTS[listener]) for node in (1, 2, 3)]
    response = steady.request(2, "Metadata", 12, listener=listener, topics=[])
    assert [(node.node_id, node.host, node.port) for node in response.brokers] == expected
    response = steady.request(2, "DescribeCluster", 1, listener=listener, endpoint_type=1)
    assert [(node.broker_id, node.host, node.port) for node in response.brokers] == expected
    assert response.controller_id in {1, 2, 3}


def test_fenced_brokers_are_listed_only_on_request():
    cluster = started()
    create(cluster, "orders", [(3, 1), (1, 2)])
    create(cluster, "lonely", [(3,)])
    kill(cluster, 3)
    fields = {"endpoint_type": 1}
    assert [node.broker_id for node in cluster.request(1, "DescribeCluster", 2, **fields).brokers] == [1, 2]
    response = cluster.request(1, "DescribeCluster", 2, **fields, include_fenced_brokers=True)
    assert [(node.broker_id, node.is_fenced) for node in response.brokers] == [(1, False), (2, False), (3, True)]
    assert [node.node_id for node in metadata(cluster).brokers] == [1, 2]
    assert partitions(cluster, "orders") == ["1 31 1 3", "1 12 12 -"]
    assert partitions(cluster, "lonely") == ["-1 3 3 3"]
    names = ("orders", "lonely")
    by_version = {
        version: [
            (part.error_code.name, part.replica_nodes)
            for topic in metadata(cluster, *names, version=version).topics
            for part in topic.partitions
        ]
        for version in (0, 12)
    }
    assert by_version[0] == [("replica_not_available", (1,)), ("none", (1, 2)), ("leader_not_available", ())]
    assert by_version[12] == [("none", (3, 1)), ("none", (1, 2)), ("leader_not_available", (3,))]


def test_leader_epochs_are_returned(steady):
    assert {part.leader_epoch for part in metadata(steady, "orders").topics[0].partitions} == {0}


# Topics


def test_every_broker_forwards_creation_and_deletion():
    cluster = started()
    for node_id in (1, 2, 3):
        create(cluster, f"by-{node_id}", [(1, 2, 3)], node_id)
    names = {topic.name for topic in cluster.request(2, "Metadata", 12, topics=None).topics}
    assert names == {"by-1", "by-2", "by-3"}
    by_id = metadata(cluster, "by-3").topics[0].topic_id
    topics = [{"name": "by-1"}, {"name": None, "topic_id": by_id}, {"name": "by-4"}]
    results = cluster.request(3, "DeleteTopics", 6, topics=topics).responses
    assert {(result.name, result.error_code) for result in results} == {
        ("by-1", ErrorCode.none),
        ("by-3", ErrorCode.none),
        ("by-4", ErrorCode.unknown_topic_or_partition),
    }
    cluster.run(100)
    assert [topic.name for topic in cluster.request(2, "Metadata", 12, topics=None).topics] == ["by-2"]


@pytest.mark.parametrize(
    ("topics", "errors"),
    [
        ([{"name": "orders"}] * 2, {"invalid_request"}),
        ([{"name": None}], {"invalid_request"}),
        ([{"name": "orders"}, "orders by id"], {"invalid_request"}),
        (["orders by id"] * 2, {"invalid_request"}),
        (["both"], {"invalid_request"}),
    ],
)
def test_a_deletion_request_must_contain_each_topic_once_and_by_either_name_or_id(topics, errors):
    cluster = started(1)
    create(cluster, "orders", [(1,)])
    topic_id = metadata(cluster, "orders").topics[0].topic_id
    elements = {"orders by id": {"name": None, "topic_id": topic_id}, "both": {"name": "orders", "topic_id": topic_id}}
    requested = [elements[topic] if isinstance(topic, str) else topic for topic in topics]
    results = cluster.request(1, "DeleteTopics", 6, topics=requested).responses
    assert {result.error_code.name for result in results} == errors
    assert "orders" in cluster.nodes[1].metadata.image.topics


def test_a_request_creates_at_most_ten_thousand_partitions(steady):
    topics = [{"name": name, "num_partitions": 5001, "replication_factor": 1} for name in "ab"]
    responses = steady.request(1, "CreateTopics", 7, topics=topics).topics
    assert [response.error_code for response in responses] == [ErrorCode.policy_violation] * 2


def test_validate_only_changes_nothing(steady):
    before = steady.nodes[1].metadata.image.records()
    topic = {"name": "fresh", "num_partitions": 2, "replication_factor": 3}
    [response] = steady.request(1, "CreateTopics", 7, topics=[topic], validate_only=True).topics
    assert (response.error_code, response.num_partitions) == (ErrorCode.none, 2)
    more = [{"name": "orders", "count": 9, "assignments": None}]
    assert steady.request(1, "CreatePartitions", 3, topics=more, validate_only=True).results[0].error_code == 0
    steady.run(100)
    assert steady.nodes[1].metadata.image.records() == before


def test_partitions_are_added():
    cluster = started()
    create(cluster, "orders", [(1, 2)])

    def add(count, *assignments):
        placed = [{"broker_ids": replicas} for replicas in assignments] or None
        [result] = cluster.request(
            2, "CreatePartitions", 3, topics=[{"name": "orders", "count": count, "assignments": placed}]
        ).results
        cluster.run(100)
        return result.error_code.name, result.error_message

    assert add(2, (3, 1)) == ("none", None)
    assert partitions(cluster, "orders") == ["1 12 12 -", "3 31 31 -"]
    assert add(4) == ("none", None)
    assert [len(state.split()[1]) for state in partitions(cluster, "orders")] == [2, 2, 2, 2]
    assert add(4) == ("invalid_partitions", "Topic already has 4 partition(s).")
    assert add(3)[0] == "invalid_partitions"
    assert add(6, (1, 2)) == (
        "invalid_replica_assignment",
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    )
    assert add(5, (1, 2, 3))[0] == "invalid_replica_assignment"
    assert add(5, (1, 1))[0] == "invalid_replica_assignment"


def test_a_topic_in_a_metadata_request_is_created():
    cluster = started(num_partitions="2", default_replication_factor="3", offsets_topic_num_partitions="1")
    [topic] = metadata(cluster, "fresh", allow_auto_topic_creation=True).topics
    assert topic.error_code == ErrorCode.unknown_topic_or_partition
    cluster.run(100)
    assert len(partitions(cluster, "fresh", allow_auto_topic_creation=True)) == 2
    [topic] = metadata(cluster, "a/b", allow_auto_topic_creation=True).topics
    assert topic.error_code == ErrorCode.invalid_topic_exception
    metadata(cluster, "__consumer_offsets", allow_auto_topic_creation=True)
    cluster.run(100)
    [topic] = metadata(cluster, "__consumer_offsets").topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 1)


# Leaders and replicas


def elect(cluster, election_type, *indexes, topic="orders", version=2):
    """Request elections of these partitions, or of all partitions. Return (partition, error) of each partition.

    If the response has no partitions, return its error.
    """
    requested = [{"topic": topic, "partitions": indexes}] if indexes else None
    response = cluster.request(1, "ElectLeaders", version, election_type=election_type, topic_partitions=requested)
    cluster.run(200)
    return [
        (part.partition_id, part.error_code.name)
        for result in response.replica_election_results
        for part in result.partition_result
    ] or response.error_code.name


PREFERRED, UNCLEAN = 0, 1


def test_leaders_are_elected_on_request():
    cluster = started(auto_leader_rebalance_enable="false")
    create(cluster, "orders", [(3, 1), (1, 3)])
    cluster.stop(3)
    assert partitions(cluster, "orders") == ["1 31 1 3", "1 13 1 3"]
    assert elect(cluster, PREFERRED, 0, 1, 2) == [
        (0, "preferred_leader_not_available"),
        (1, "election_not_needed"),
        (2, "unknown_topic_or_partition"),
    ]
    cluster.start(3)
    cluster.run_until(lambda: partitions(cluster, "orders") == ["1 31 13 -", "1 13 13 -"], within_ms=TIMEOUT_MS)
    assert elect(cluster, PREFERRED) == [(0, "none")]  # partitions that need no election are omitted
    assert partitions(cluster, "orders") == ["3 31 13 -", "1 13 13 -"]
    assert elect(cluster, UNCLEAN, 0) == [(0, "election_not_needed")]
    assert elect(cluster, 7, 0) == [(0, "invalid_request")]


def test_an_unclean_election_on_request_does_not_need_unclean_leader_election_enable():
    cluster = started()
    create(cluster, "orders", [(3, 2)])
    cluster.stop(2)
    cluster.kill(3)
    cluster.start(2)
    expected = [1, 2]
    cluster.run_until(lambda: [node.node_id for node in metadata(cluster).brokers] == expected, within_ms=TIMEOUT_MS)
    assert partitions(cluster, "orders") == ["-1 32 3 3"]
    assert elect(cluster, PREFERRED, 0) == [(0, "preferred_leader_not_available")]
    assert elect(cluster, UNCLEAN, 0) == [(0, "none")]
    assert partitions(cluster, "orders") == ["2 32 2 3"]


def test_a_reassignment_moves_the_records():
    cluster = started()
    create(cluster, "orders", [(1, 2)])
    requested = [{"name": "orders", "partitions": [{"partition_index": 0, "replicas": [3, 2]}]}]
    response = cluster.request(2, "AlterPartitionReassignments", 1, topics=requested)
    assert response.responses[0].partitions[0].error_code == ErrorCode.none
    cluster.run_until(lambda: partitions(cluster, "orders") in [["3 32 23 -"], ["2 32 23 -"]])
    assert cluster.nodes[1].broker.replicas.get("orders", 0) is None
    assert cluster.request(2, "ListPartitionReassignments", 0, topics=None).topics == ()


# Resources with configurations


def resources(cluster, version, **fields):
    response = cluster.request(1, "ListConfigResources", version, **fields)
    return response.error_code, [(each.resource_type, each.resource_name) for each in response.config_resources]


BROKERS = [(4, "1"), (4, "2"), (4, "3")]
LOGGERS = [(8, "1"), (8, "2"), (8, "3")]
TOPICS = [(2, "orders"), (2, "returns")]


@pytest.mark.parametrize(
    ("types", "listed"),
    [
        ((), [*LOGGERS, *BROKERS, *TOPICS]),
        ((2, 4, 2), [*BROKERS, *TOPICS]),
        ((8,), LOGGERS),
        ((16, 32), []),
    ],
)
def test_resources_of_the_requested_types_are_listed(steady, types, listed):
    assert resources(steady, 1, resource_types=types) == (ErrorCode.none, listed)


@pytest.mark.parametrize("types", [(0,), (2, 77), (-1,)])
def test_resources_of_unsupported_types_are_rejected(steady, types):
    assert resources(steady, 1, resource_types=types) == (ErrorCode.unsupported_version, [])


def test_version_0_lists_client_metrics_only(steady):
    assert resources(steady, 0) == (ErrorCode.none, [])


# Log directories


def test_log_directories_are_described(steady):
    def described(topics):
        [result] = steady.request(1, "DescribeLogDirs", 4, topics=topics).results
        assert (result.error_code, result.log_dir) == (ErrorCode.none, "/data")
        return {topic.name: {part.partition_index for part in topic.partitions} for topic in result.topics}

    assert described(None) == {"orders": {0, 2}, "returns": {0, 1, 2, 3}}
    assert described([{"topic": "returns", "partitions": [1, 9]}, {"topic": "nowhere", "partitions": [0]}]) == {
        "returns": {1}
    }
    assert described([]) == {}


# Pages


def page(cluster, names, limit, cursor=None):
    requested = [{"name": name} for name in names]
    return cluster.request(
        1, "DescribeTopicPartitions", 0, topics=requested, response_partition_limit=limit, cursor=cursor
    )


def seen(response):
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in response.topics]


@settings(max_examples=40)
@given(names=st.sets(st.sampled_from(["orders", "returns", "nowhere", "zoo", "a/b"])), limit=st.integers(-1, 9))
def test_pages_add_up_to_the_whole_description(steady, names, limit):
    whole = page(steady, names, 2000)
    pages = [page(steady, names, limit)]
    while pages[-1].next_cursor is not None:
        cursor = pages[-1].next_cursor
        following = {"topic_name": cursor.topic_name, "partition_index": cursor.partition_index}
        pages.append(page(steady, names, limit, following))
        assert len(pages) < 20
    merged: dict[str, list[int]] = {}
    for response in pages:
        assert sum(len(indexes) for _, indexes in seen(response)) <= max(limit, 1)
        for name, indexes in seen(response):
            merged.setdefault(name, []).extend(indexes)
    assert list(merged.items()) == seen(whole)
    assert [name for name, _ in seen(whole)] == (sorted(names) or ["orders", "returns"])


@pytest.mark.parametrize("cursor", [("zoo", 0), ("orders", -1)])
def test_an_invalid_cursor_is_rejected(steady, cursor):
    topic_name, partition_index = cursor
    response = page(steady, ["orders"], 10, {"topic_name": topic_name, "partition_index": partition_index})
    assert [(topic.name, topic.error_code.name) for topic in response.topics] == [("orders", "invalid_request")]


# The listener of the controllers


def test_a_standby_controller_returns_not_controller(steady):
    standby = next(node for node in (1, 2, 3) if node != steady.active_controller)
    topic = {"name": "fresh", "num_partitions": 1, "replication_factor": 1}
    [response] = steady.request(standby, "CreateTopics", 7, listener=CONTROLLER, topics=[topic]).topics
    assert response.error_code == ErrorCode.not_controller
