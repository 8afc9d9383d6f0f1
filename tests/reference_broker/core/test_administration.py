"""What an administrator asks of a cluster of three, and what clients are told of it meanwhile."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from reference_broker.simulation.cluster import CLIENT, CONTROLLER, PORTS, REPLICATION
from tests.reference_broker.cluster import Cluster

SESSION_MS = 6_000
PATIENCE_MS = 60_000


def started(size=3, **properties):
    """A cluster whose brokers all serve."""
    cluster = Cluster(size, broker_session_timeout_ms=str(SESSION_MS), **properties)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    cluster.run_until(lambda: len(cluster.ask(1, "DescribeCluster", 1, endpoint_type=1).brokers) == size)
    return cluster


@pytest.fixture(scope="module")
def steady():
    """A cluster that no test breaks, with two topics."""
    cluster = started()
    create(cluster, "orders", [(1, 2), (2, 3), (3, 1)])
    create(cluster, "returns", [(1, 2, 3)] * 4)
    return cluster


def kill(cluster, node_id):
    """A broker that is gone without a word is fenced in time; longer, if it was the active controller."""
    cluster.kill(node_id)
    others = sorted(cluster.nodes)
    cluster.run_until(lambda: [node.node_id for node in metadata(cluster).brokers] == others, within_ms=PATIENCE_MS)


def create(cluster, name, assignments, node_id=1):
    """A topic with these replicas, known to all brokers."""
    placed = [{"partition_index": index, "broker_ids": replicas} for index, replicas in enumerate(assignments)]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": placed}
    [result] = cluster.ask(node_id, "CreateTopics", 7, topics=[topic]).topics
    assert result.error_code == ErrorCode.none
    cluster.run(100)


def metadata(cluster, *names, node_id=1, version=12, **fields):
    asked = [{"name": name} for name in names]
    return cluster.ask(node_id, "Metadata", version, topics=asked, **fields)


def partitions(cluster, name, node_id=1, **fields):
    """`leader replicas ISR offline` of each partition."""
    [topic] = metadata(cluster, name, node_id=node_id, **fields).topics
    return [
        " ".join(
            str(part.leader_id) if nodes is None else "".join(map(str, nodes)) or "-"
            for nodes in (None, part.replica_nodes, part.isr_nodes, part.offline_replicas)
        )
        for part in topic.partitions
    ]


# Who is there


@pytest.mark.parametrize("listener", [CLIENT, REPLICATION])
def test_brokers_are_told_at_the_addresses_of_the_listener(steady, listener):
    expected = [(node, f"b{node}.kafka.test", PORTS[listener]) for node in (1, 2, 3)]
    told = steady.ask(2, "Metadata", 12, listener=listener, topics=[])
    assert [(node.node_id, node.host, node.port) for node in told.brokers] == expected
    told = steady.ask(2, "DescribeCluster", 1, listener=listener, endpoint_type=1)
    assert [(node.broker_id, node.host, node.port) for node in told.brokers] == expected
    assert told.controller_id in {1, 2, 3}


def test_a_fenced_broker_is_told_of_only_on_demand():
    cluster = started()
    create(cluster, "orders", [(3, 1), (1, 2)])
    create(cluster, "lonely", [(3,)])
    kill(cluster, 3)
    asked = {"endpoint_type": 1}
    assert [node.broker_id for node in cluster.ask(1, "DescribeCluster", 2, **asked).brokers] == [1, 2]
    told = cluster.ask(1, "DescribeCluster", 2, **asked, include_fenced_brokers=True)
    assert [(node.broker_id, node.is_fenced) for node in told.brokers] == [(1, False), (2, False), (3, True)]
    assert [node.node_id for node in metadata(cluster).brokers] == [1, 2]
    assert partitions(cluster, "orders") == ["1 31 1 3", "1 12 12 -"]
    assert partitions(cluster, "lonely") == ["-1 3 3 3"]
    names = ("orders", "lonely")
    told = {
        version: [
            (part.error_code.name, part.replica_nodes)
            for topic in metadata(cluster, *names, version=version).topics
            for part in topic.partitions
        ]
        for version in (0, 12)
    }
    assert told[0] == [("replica_not_available", (1,)), ("none", (1, 2)), ("leader_not_available", ())]
    assert told[12] == [("none", (3, 1)), ("none", (1, 2)), ("leader_not_available", (3,))]


def test_leader_epochs_are_told(steady):
    assert {part.leader_epoch for part in metadata(steady, "orders").topics[0].partitions} == {0}


# Topics come and go


def test_every_broker_creates_and_deletes_for_the_controller():
    cluster = started()
    for node_id in (1, 2, 3):
        create(cluster, f"by-{node_id}", [(1, 2, 3)], node_id)
    names = {topic.name for topic in cluster.ask(2, "Metadata", 12, topics=None).topics}
    assert names == {"by-1", "by-2", "by-3"}
    by_id = metadata(cluster, "by-3").topics[0].topic_id
    topics = [{"name": "by-1"}, {"name": None, "topic_id": by_id}, {"name": "by-4"}]
    answers = cluster.ask(3, "DeleteTopics", 6, topics=topics).responses
    assert {(answer.name, answer.error_code) for answer in answers} == {
        ("by-1", ErrorCode.none),
        ("by-3", ErrorCode.none),
        ("by-4", ErrorCode.unknown_topic_or_partition),
    }
    cluster.run(100)
    assert [topic.name for topic in cluster.ask(2, "Metadata", 12, topics=None).topics] == ["by-2"]


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
def test_a_topic_is_deleted_by_name_or_by_id_and_once(topics, errors):
    cluster = started(1)
    create(cluster, "orders", [(1,)])
    topic_id = metadata(cluster, "orders").topics[0].topic_id
    words = {"orders by id": {"name": None, "topic_id": topic_id}, "both": {"name": "orders", "topic_id": topic_id}}
    asked = [words[topic] if isinstance(topic, str) else topic for topic in topics]
    answers = cluster.ask(1, "DeleteTopics", 6, topics=asked).responses
    assert {answer.error_code.name for answer in answers} == errors
    assert "orders" in cluster.nodes[1].metadata.image.topics


def test_no_more_than_ten_thousand_partitions_at_once(steady):
    topics = [{"name": name, "num_partitions": 5001, "replication_factor": 1} for name in "ab"]
    answers = steady.ask(1, "CreateTopics", 7, topics=topics).topics
    assert [answer.error_code for answer in answers] == [ErrorCode.policy_violation] * 2


def test_what_is_only_judged_leaves_nothing(steady):
    before = steady.nodes[1].metadata.image.records()
    topic = {"name": "fresh", "num_partitions": 2, "replication_factor": 3}
    [answer] = steady.ask(1, "CreateTopics", 7, topics=[topic], validate_only=True).topics
    assert (answer.error_code, answer.num_partitions) == (ErrorCode.none, 2)
    more = [{"name": "orders", "count": 9, "assignments": None}]
    assert steady.ask(1, "CreatePartitions", 3, topics=more, validate_only=True).results[0].error_code == 0
    steady.run(100)
    assert steady.nodes[1].metadata.image.records() == before


def test_partitions_are_added():
    cluster = started()
    create(cluster, "orders", [(1, 2)])

    def add(count, *assignments):
        placed = [{"broker_ids": replicas} for replicas in assignments] or None
        [result] = cluster.ask(
            2, "CreatePartitions", 3, topics=[{"name": "orders", "count": count, "assignments": placed}]
        ).results
        cluster.run(100)
        return result.error_code.name, result.error_message

    assert add(2, (3, 1)) == ("none", None)
    assert partitions(cluster, "orders") == ["1 12 12 -", "3 31 31 -"]
    assert add(4) == ("none", None)
    assert [len(told.split()[1]) for told in partitions(cluster, "orders")] == [2, 2, 2, 2]
    assert add(4) == ("invalid_partitions", "Topic already has 4 partition(s).")
    assert add(3)[0] == "invalid_partitions"
    assert add(6, (1, 2)) == (
        "invalid_replica_assignment",
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    )
    assert add(5, (1, 2, 3))[0] == "invalid_replica_assignment"
    assert add(5, (1, 1))[0] == "invalid_replica_assignment"


def test_a_topic_that_a_client_names_is_made_meanwhile():
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
    asked = [{"topic": topic, "partitions": indexes}] if indexes else None
    answer = cluster.ask(1, "ElectLeaders", version, election_type=election_type, topic_partitions=asked)
    cluster.run(200)
    return [
        (part.partition_id, part.error_code.name)
        for result in answer.replica_election_results
        for part in result.partition_result
    ] or answer.error_code.name


PREFERRED, UNCLEAN = 0, 1


def test_leaders_are_elected_on_demand():
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
    cluster.run_until(lambda: partitions(cluster, "orders") == ["1 31 13 -", "1 13 13 -"], within_ms=PATIENCE_MS)
    assert elect(cluster, PREFERRED) == [(0, "none")]  # those that need none are not told of
    assert partitions(cluster, "orders") == ["3 31 13 -", "1 13 13 -"]
    assert elect(cluster, UNCLEAN, 0) == [(0, "election_not_needed")]
    assert elect(cluster, 7, 0) == [(0, "invalid_request")]


def test_an_unclean_election_on_demand_needs_no_setting():
    cluster = started()
    create(cluster, "orders", [(3, 2)])
    cluster.stop(2)
    cluster.kill(3)
    cluster.start(2)
    there = [1, 2]
    cluster.run_until(lambda: [node.node_id for node in metadata(cluster).brokers] == there, within_ms=PATIENCE_MS)
    assert partitions(cluster, "orders") == ["-1 32 3 3"]
    assert elect(cluster, PREFERRED, 0) == [(0, "preferred_leader_not_available")]
    assert elect(cluster, UNCLEAN, 0) == [(0, "none")]
    assert partitions(cluster, "orders") == ["2 32 2 3"]


def test_a_partition_moves_with_what_is_in_it():
    cluster = started()
    create(cluster, "orders", [(1, 2)])
    asked = [{"name": "orders", "partitions": [{"partition_index": 0, "replicas": [3, 2]}]}]
    answer = cluster.ask(2, "AlterPartitionReassignments", 1, topics=asked)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.none
    cluster.run_until(lambda: partitions(cluster, "orders") in [["3 32 23 -"], ["2 32 23 -"]])
    assert cluster.nodes[1].broker.replicas.get("orders", 0) is None
    assert cluster.ask(2, "ListPartitionReassignments", 0, topics=None).topics == ()


# What lies where


def test_log_directories(steady):
    def told(topics):
        [result] = steady.ask(1, "DescribeLogDirs", 4, topics=topics).results
        assert (result.error_code, result.log_dir) == (ErrorCode.none, "/data")
        return {topic.name: {part.partition_index for part in topic.partitions} for topic in result.topics}

    assert told(None) == {"orders": {0, 2}, "returns": {0, 1, 2, 3}}
    assert told([{"topic": "returns", "partitions": [1, 9]}, {"topic": "nowhere", "partitions": [0]}]) == {
        "returns": {1}
    }
    assert told([]) == {}


# Page by page


def page(cluster, names, limit, cursor=None):
    asked = [{"name": name} for name in names]
    return cluster.ask(1, "DescribeTopicPartitions", 0, topics=asked, response_partition_limit=limit, cursor=cursor)


def seen(answer):
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in answer.topics]


@settings(max_examples=40)
@given(names=st.sets(st.sampled_from(["orders", "returns", "nowhere", "zoo", "a/b"])), limit=st.integers(-1, 9))
def test_pages_come_to_the_whole(steady, names, limit):
    whole = page(steady, names, 2000)
    pages = [page(steady, names, limit)]
    while pages[-1].next_cursor is not None:
        cursor = pages[-1].next_cursor
        following = {"topic_name": cursor.topic_name, "partition_index": cursor.partition_index}
        pages.append(page(steady, names, limit, following))
        assert len(pages) < 20
    merged: dict[str, list[int]] = {}
    for answer in pages:
        assert sum(len(indexes) for _, indexes in seen(answer)) <= max(limit, 1)
        for name, indexes in seen(answer):
            merged.setdefault(name, []).extend(indexes)
    assert list(merged.items()) == seen(whole)
    assert [name for name, _ in seen(whole)] == (sorted(names) or ["orders", "returns"])


@pytest.mark.parametrize("cursor", [("zoo", 0), ("orders", -1)])
def test_a_cursor_elsewhere_is_refused(steady, cursor):
    topic_name, partition_index = cursor
    answer = page(steady, ["orders"], 10, {"topic_name": topic_name, "partition_index": partition_index})
    assert [(topic.name, topic.error_code.name) for topic in answer.topics] == [("orders", "invalid_request")]


# The listener of the controllers


def test_only_the_active_controller_decides(steady):
    standby = next(node for node in (1, 2, 3) if node != steady.active_controller)
    topic = {"name": "fresh", "num_partitions": 1, "replication_factor": 1}
    [answer] = steady.ask(standby, "CreateTopics", 7, listener=CONTROLLER, topics=[topic]).topics
    assert answer.error_code == ErrorCode.not_controller
