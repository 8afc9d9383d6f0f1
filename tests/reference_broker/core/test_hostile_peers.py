"""Invalid messages from raft peers: they must not end a node, exhaust the epochs, or damage the persisted state."""

import pytest
from kio.schema.errors import ErrorCode

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.election_state import ElectionState
from reference_broker.core.quorum.leader_state import LeaderState
from reference_broker.core.quorum.messages import MAX_EPOCH
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.simulation.cluster import CONTROLLER
from tests.reference_broker.cluster import CLOSED, Cluster

EPOCHS = (-1, 0, "current", "next", 2**30, 2**30 + 1, MAX_EPOCH - 1, MAX_EPOCH)
SENDERS = (-1, 1, 2, 3, 9, MAX_EPOCH)
OFFSETS = (-1, 0, 1, 2**62, 2**63 - 1)


@pytest.fixture
def cluster():
    cluster = Cluster(3)
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    return cluster


def send(cluster, node_id, api, epoch, version=1, **partition):
    """Send a request for the metadata partition, and return the error of the partition, or the top-level error.

    :param epoch: a number, or `current` or `next`, relative to the node's epoch.
    :param partition: fields of the partition in the request.
    """
    current = cluster.nodes[node_id].quorum.state.epoch
    epoch_field = "replica_epoch" if api == "Vote" else "leader_epoch"
    epoch_number = {"current": current, "next": current + 1}.get(epoch, epoch)
    fields = {"partition_index": 0, epoch_field: epoch_number, **partition}
    topics = [{"topic_name": "__cluster_metadata", "partitions": [fields]}]
    voter = {} if api == "EndQuorumEpoch" else {"voter_id": node_id}
    response = cluster.request(
        node_id, api, version, listener=CONTROLLER, cluster_id="cluster", topics=topics, **voter, within_ms=5_000
    )
    assert response != CLOSED
    return response.topics[0].partitions[0].error_code if response.topics else response.error_code


def assert_the_quorum_works(cluster):
    """Assert that the quorum elects a leader, now and after a restart of all nodes, and then commits a new topic."""

    def is_available():
        return cluster.active_controller and all(node.is_ready for node in cluster.nodes.values())

    cluster.run_until(is_available, within_ms=60_000)
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    cluster.run_until(is_available, within_ms=60_000)
    topic = {"name": "afterwards", "num_partitions": 1, "replication_factor": 3}
    [created] = cluster.request(1, "CreateTopics", 7, topics=[topic], timeout=30_000, within_ms=60_000).topics
    assert created.error_code is ErrorCode.none


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize("api", ["BeginQuorumEpoch", "EndQuorumEpoch"])
def test_nodes_survive_any_claim_of_leadership(cluster, api, epoch):
    for leader_id in SENDERS:
        for node_id in (1, 2, 3):
            send(cluster, node_id, api, epoch, leader_id=leader_id)
    assert_the_quorum_works(cluster)


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize("pre_vote", [True, False])
def test_nodes_survive_any_vote_request(cluster, epoch, pre_vote):
    for candidate_id in SENDERS:
        for offset in OFFSETS:
            for node_id in (1, 2, 3):
                log = {"last_offset": offset, "last_offset_epoch": 0, "pre_vote": pre_vote}
                send(cluster, node_id, "Vote", epoch, version=2, replica_id=candidate_id, **log)
    assert_the_quorum_works(cluster)


def test_a_candidate_that_is_not_a_voter_changes_nothing(cluster):
    before = {node_id: node.quorum.election for node_id, node in cluster.nodes.items()}
    for node_id in (1, 2, 3):
        error = send(cluster, node_id, "Vote", MAX_EPOCH, version=2, replica_id=77, last_offset=2**40)
        assert error is ErrorCode.inconsistent_voter_set
    assert {node_id: node.quorum.election for node_id, node in cluster.nodes.items()} == before


@pytest.mark.parametrize("api", ["BeginQuorumEpoch", "EndQuorumEpoch"])
def test_a_peer_cannot_make_a_node_the_leader(cluster, api):
    follower = next(node_id for node_id in cluster.nodes if node_id != cluster.active_controller)
    for epoch in ("current", "next"):
        before = cluster.nodes[follower].quorum.state
        assert send(cluster, follower, api, epoch, leader_id=follower) is ErrorCode.invalid_request
        assert cluster.nodes[follower].quorum.state is before


@pytest.mark.parametrize("api", ["BeginQuorumEpoch", "EndQuorumEpoch"])
def test_a_peer_cannot_make_the_leader_the_leader_of_a_newer_epoch(cluster, api):
    leader = cluster.active_controller
    before = cluster.nodes[leader].quorum.state
    assert send(cluster, leader, api, "next", leader_id=leader) is ErrorCode.invalid_request
    assert send(cluster, leader, api, "current", leader_id=leader) is ErrorCode.none
    assert cluster.nodes[leader].quorum.state is before


def test_a_second_leader_of_an_epoch_is_rejected(cluster):
    leader = cluster.active_controller
    follower, other = (node_id for node_id in cluster.nodes if node_id != leader)
    assert send(cluster, follower, "BeginQuorumEpoch", "current", leader_id=other) is ErrorCode.invalid_request
    assert cluster.nodes[follower].quorum.state.leader_id == leader


@pytest.mark.parametrize("epoch", [MAX_EPOCH - 1, MAX_EPOCH])
def test_nodes_start_without_a_leader_if_no_epoch_is_left(epoch):
    """An older release may have persisted one of the last epochs. This release rejects messages with such epochs."""
    cluster = Cluster(3)
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
        text = f'{{"leaderId":-1,"leaderEpoch":{epoch},"votedId":-1,"data_version":0}}'
        cluster.disks[node_id].replace(f"{QUORUM_LOG_DIRECTORY}/quorum-state", text.encode())
    for _ in range(2):
        for node_id in (1, 2, 3):
            cluster.start(node_id)
        cluster.run(20_000)
        assert {node.quorum.state.epoch for node in cluster.nodes.values()} == {MAX_EPOCH}
        for node_id in (1, 2, 3):
            cluster.kill(node_id)


@pytest.mark.parametrize(("epoch", "leader"), [(2**31, -1), (-1, -1), (0, 2**31), (0, -2)])
def test_an_election_state_out_of_range_is_rejected(epoch, leader):
    with pytest.raises(ValueError, match="invalid epoch or node id"):
        ElectionState(epoch, leader)


def test_a_leader_keeps_a_bounded_number_of_observers():
    voters = VoterSet([Voter(ReplicaKey(1))])
    now = Now(0, 0)
    leader = LeaderState(ReplicaKey(1), epoch=1, epoch_start_offset=0, voters=voters, config=QuorumConfig(), now=now)
    for node_id in range(2, 3_000):
        leader.update_replica_state(ReplicaKey(node_id), 0, now)
        leader.update_replica_state(ReplicaKey(2), 0, now)
    observers = [observer.key.id for observer in leader.describe(now).observers]
    assert len(observers) == 1_000
    assert {2, 2_999} <= set(observers)
