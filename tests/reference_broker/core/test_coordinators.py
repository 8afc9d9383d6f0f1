"""Group coordinators of a cluster (discovery, failover, commits), and allocation of producer ids."""

import pytest
from kio.schema.errors import ErrorCode

from reference_broker.core import group_offsets
from reference_broker.core.group_coordinator import partition_for_group
from tests.reference_broker.cluster import Cluster

OFFSETS = "__consumer_offsets"
GROUPS = [f"group-{number}" for number in range(8)]


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of three brokers with the topics `orders` and `__consumer_offsets`, each on all brokers."""
    cluster = Cluster(3, offsets_topic_num_partitions="4", min_insync_replicas="2")
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    topic = {"name": "orders", "num_partitions": 2, "replication_factor": 3}
    [created] = cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=5_000).topics
    assert created.error_code == 0
    assert cluster.request(2, "FindCoordinator", 3, key="g").error_code == ErrorCode.coordinator_not_available
    cluster.run_until(lambda: coordinator(cluster, "g") > 0)
    return cluster


def coordinator(cluster: Cluster, group: str, node_id: int | None = None) -> int:
    """Return the id of a group's coordinator as one node or all nodes report it.

    It is -1 for an error, or if the nodes report different ids.
    """
    responses = [
        cluster.request(node, "FindCoordinator", 4, key_type=0, coordinator_keys=[group]).coordinators[0]
        for node in ([node_id] if node_id else cluster.nodes)
    ]
    ids = {response.node_id for response in responses}
    return ids.pop() if len(ids) == 1 else -1


def next_coordinator(cluster: Cluster, group: str, last: int) -> int:
    """Wait until all nodes return the same coordinator, other than the last one, and return its id."""
    cluster.run_until(lambda: coordinator(cluster, group) not in {-1, last})
    return coordinator(cluster, group)


def start_commit(cluster: Cluster, node: int, group: str, offset: int) -> list[object]:
    """Send a commit, and return a list to which its response will be added."""
    partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": 0}
    topics = [{"name": "orders", "partitions": [partition]}]
    return cluster.start_request(
        node, "OffsetCommit", 9, group_id=group, generation_id_or_member_epoch=-1, topics=topics
    )


def commit(cluster: Cluster, node: int, group: str, offset: int) -> int:
    responses = start_commit(cluster, node, group, offset)
    [response] = cluster.run_until(lambda: responses)
    return response.topics[0].partitions[0].error_code


def committed(cluster: Cluster, node: int, group: str, **fields: object) -> tuple[int, list[int]]:
    """Return the group's error, and its committed offsets in the order of the response."""
    requested = {"group_id": group, "topics": [{"name": "orders", "partition_indexes": [0]}]}
    [found] = cluster.request(node, "OffsetFetch", 9, groups=[requested], **fields).groups
    return found.error_code, [part.committed_offset for topic in found.topics for part in topic.partitions]


def others(cluster: Cluster, *nodes: int) -> list[int]:
    return [node for node in cluster.nodes if node not in nodes]


def test_every_node_returns_the_leader_of_the_groups_partition(cluster):
    for group in GROUPS:
        leader = cluster.nodes[1].broker.image.topics[OFFSETS].partitions[partition_for_group(group, 4)].leader
        assert [coordinator(cluster, group, node) for node in (1, 2, 3)] == [leader] * 3
    assert len({coordinator(cluster, group) for group in GROUPS}) > 1


def test_committed_offsets_have_three_replicas_by_default(cluster):
    partitions = cluster.nodes[1].broker.image.topics[OFFSETS].partitions.values()
    assert [len(partition.replicas) for partition in partitions] == [3] * 4


def test_only_the_coordinator_serves_a_group(cluster):
    for group in GROUPS:
        leader = coordinator(cluster, group)
        assert commit(cluster, leader, group, 5) == 0
        assert committed(cluster, leader, group) == (0, [5])
        for other in others(cluster, leader):
            assert commit(cluster, other, group, 6) == ErrorCode.not_coordinator
            assert committed(cluster, other, group) == (ErrorCode.not_coordinator, [])
        assert committed(cluster, leader, group) == (0, [5])


@pytest.mark.parametrize("clean", [True, False])
def test_the_next_coordinator_has_the_committed_offsets(cluster, clean):
    leaders = {group: coordinator(cluster, group) for group in GROUPS}
    for offset, group in enumerate(GROUPS):
        assert commit(cluster, leaders[group], group, offset) == 0
    stopped = leaders["group-0"]
    if clean:
        cluster.stop(stopped)
    else:
        cluster.kill(stopped)
    for offset, group in enumerate(GROUPS):
        leader = next_coordinator(cluster, group, stopped)
        assert committed(cluster, leader, group) == (0, [offset])
        assert commit(cluster, leader, group, offset + 100) == 0
    cluster.start(stopped)
    cluster.run_until(lambda: cluster.nodes[stopped].is_ready)
    for offset, group in enumerate(GROUPS):
        assert committed(cluster, coordinator(cluster, group), group) == (0, [offset + 100])


def test_a_coordinator_that_loads_offsets_returns_coordinator_load_in_progress(cluster, monkeypatch):
    monkeypatch.setattr(group_offsets, "_LOAD_SIZE_BYTES", 1)
    leader = coordinator(cluster, "g")
    for offset in range(40):
        assert commit(cluster, leader, "g", offset) == 0
    cluster.stop(leader)
    next_leader = next_coordinator(cluster, "g", leader)
    groups = cluster.nodes[next_leader].broker.groups
    partition = groups.find("g").partition
    groups.on_resignation(partition, cluster.now)
    with monkeypatch.context() as patch:
        patch.setattr(groups._runtime.timers, "set", lambda *_: None)  # load only the first piece
        groups.on_election(partition, cluster.now)
    assert commit(cluster, next_leader, "g", 1) == ErrorCode.coordinator_load_in_progress
    assert committed(cluster, next_leader, "g") == (ErrorCode.coordinator_load_in_progress, [])
    groups._load(groups._led[partition.index], cluster.now)
    cluster.run_until(lambda: committed(cluster, next_leader, "g") == (0, [39]))


def test_offsets_are_loaded_in_several_events(cluster, monkeypatch):
    leader = coordinator(cluster, "g")
    for offset in range(5):
        assert commit(cluster, leader, "g", offset) == 0
    monkeypatch.setattr(group_offsets, "_LOAD_SIZE_BYTES", 1)
    node = cluster.nodes[leader]
    partition = node.broker.groups.find("g").partition
    node.broker.groups.on_resignation(partition, cluster.now)
    node.broker.groups.on_election(partition, cluster.now)
    node.fire(cluster.now)
    assert node.broker.groups.find("g") is ErrorCode.coordinator_load_in_progress
    cluster.run_until(lambda: committed(cluster, leader, "g") == (0, [4]))


def test_a_commit_that_is_not_replicated_has_no_effect(cluster):
    leader = coordinator(cluster, "g")
    assert commit(cluster, leader, "g", 1) == 0
    cluster.cut(*cluster.nodes)
    responses = start_commit(cluster, leader, "g", 2)
    stable = cluster.start_request(leader, "OffsetFetch", 9, groups=[{"group_id": "g"}], require_stable=True)
    cluster.run(1_000)
    assert not responses
    assert committed(cluster, leader, "g") == (0, [1])
    cluster.run_until(lambda: responses and stable, within_ms=6_000)
    [partition] = responses[0].topics[0].partitions
    assert partition.error_code == ErrorCode.coordinator_not_available
    assert stable[0].groups[0].error_code == ErrorCode.coordinator_not_available
    assert committed(cluster, leader, "g") == (0, [1])


def test_a_fetch_of_stable_offsets_waits_for_pending_commits(cluster):
    leader = coordinator(cluster, "g")
    assert commit(cluster, leader, "g", 1) == 0
    for offset in range(2, 10):
        responses = [start_commit(cluster, leader, "g", offset)]
        requested = [{"group_id": "g", "topics": None}]
        responses.append(cluster.start_request(leader, "OffsetFetch", 9, groups=requested, require_stable=True))
        cluster.run_until(lambda responses=responses: all(responses))
        [topic] = responses[1][0].groups[0].topics
        assert topic.partitions[0].committed_offset == offset


def test_the_offsets_of_a_deleted_topic_are_deleted_on_all_nodes(cluster):
    leader = coordinator(cluster, "g")
    assert commit(cluster, leader, "g", 5) == 0
    cluster.request(1, "DeleteTopics", 5, topic_names=["orders"], timeout=5_000)
    cluster.run(1_000)
    cluster.kill(leader)
    assert not cluster.nodes[next_coordinator(cluster, "g", leader)].broker.groups.find("g").exists("g")


def test_producer_ids_are_unique_in_the_cluster(cluster):
    """A broker returns ids from a block of a thousand, and requests another block after a restart."""

    def new_producer_id(node: int) -> int:
        response = cluster.request(node, "InitProducerId", 4, producer_id=-1, producer_epoch=-1)
        assert (response.error_code, response.producer_epoch) == (0, 0)
        return response.producer_id

    ids = [new_producer_id(node) for node in (1, 2, 3, 1, 2, 3)]
    cluster.kill(2)
    cluster.start(2)
    cluster.run_until(lambda: cluster.nodes[2].is_ready)
    ids += [new_producer_id(node) for node in (1, 2, 3)]
    assert len(set(ids)) == len(ids)
    assert sorted({producer_id // 1000 for producer_id in ids}) == [0, 1, 2, 3]


def test_a_broker_uses_each_block_completely_before_it_requests_another_one(cluster):
    fields = {"producer_id": -1, "producer_epoch": -1}
    waiting = [cluster.start_request(1, "InitProducerId", 4, **fields) for _ in range(1_100)]
    cluster.run_until(lambda: all(waiting))
    ids = [responses[0].producer_id for responses in waiting]
    assert sorted(ids) == [*range(1_100)]


def test_no_producer_id_is_allocated_without_a_controller(cluster):
    cluster.cut(*cluster.nodes)
    responses = cluster.start_request(1, "InitProducerId", 4, producer_id=-1, producer_epoch=-1)
    cluster.run_until(lambda: responses)
    assert (responses[0].error_code, responses[0].producer_id) == (ErrorCode.coordinator_load_in_progress, -1)
