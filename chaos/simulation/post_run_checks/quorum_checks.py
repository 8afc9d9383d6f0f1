"""Post-run checks of the quorum's requests on the controllers' listener, mostly with a wrong id, epoch or offset.

Sources: `KafkaRaftClient` of Kafka 4.3, KIP-595, KIP-630, KIP-853, KIP-996.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from chaos.simulation.post_run_checks.post_run_check import (
    ELSEWHERE,
    NONE,
    UNKNOWN_ID,
    UNKNOWN_NODE,
    ClusterState,
    PostRunCheck,
    Receiver,
    always,
    if_standby_has_fetched,
    schema_for_nodes,
)
from reference_broker.core.quorum.messages import METADATA_TOPIC_ID
from reference_broker.core.quorum.wire_parts import named

OWN: Final = "own"
"""Stands for the id of the cluster where a cluster id is a parameter."""
_FETCH, _VOTE, _BEGIN, _END, _FETCH_SNAPSHOT = 1, 52, 53, 54, 59


def vote(state: ClusterState, *, cluster_id: str | None = OWN, voter_id: int | None = None, **given: Any) -> Any:
    """Return a Vote request to the standby, with the controller as candidate, the current epoch and an empty log.

    :param voter_id: receiver in the request; None: the standby.
    :param given: other values for fields of the partition.
    """
    schema, receiver_id = schema_for_nodes(_VOTE), state.standby
    partition = schema.PartitionData(
        partition_index=0,
        replica_epoch=state.epoch,
        replica_id=state.controller,
        replica_directory_id=None,
        voter_directory_id=None,
        last_offset_epoch=0,
        last_offset=0,
        pre_vote=False,
    )
    return schema.VoteRequest(
        cluster_id=state.cluster_id if cluster_id == OWN else cluster_id,
        voter_id=receiver_id if voter_id is None else voter_id,
        topics=named(schema, replace(partition, **given)),
    )


def _votes(state: ClusterState) -> Any:
    return [
        vote(state, cluster_id=ELSEWHERE),
        vote(state, partition_index=1),
        vote(state, replica_epoch=state.epoch - 1, pre_vote=True),
        vote(state, voter_id=state.controller),
        vote(state, voter_directory_id=UNKNOWN_ID),
        vote(state, replica_id=-1),
        vote(state, replica_id=UNKNOWN_NODE),
        vote(state, replica_epoch=2**31 - 1),
        vote(state, last_offset=-1),
        vote(state, last_offset_epoch=-1),
        vote(state, last_offset_epoch=state.epoch, last_offset=2**40),
        vote(state, last_offset_epoch=state.epoch + 1, pre_vote=True),
        vote(state),
        vote(state, pre_vote=True),
        vote(state, cluster_id=None),
        vote(state, last_offset_epoch=state.epoch - 1, last_offset=2**40),
        vote(state, last_offset_epoch=state.epoch, last_offset=2**40, pre_vote=True),
        vote(state, voter_id=-1),
    ]


_VOTE_ERRORS: Final = [
    *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST"),
    *(
        each
        for error in (
            *("FENCED_LEADER_EPOCH", "INVALID_VOTER_KEY", "INVALID_VOTER_KEY", "INVALID_REQUEST"),
            *("INCONSISTENT_VOTER_SET", *("INVALID_REQUEST",) * 5),
        )
        for each in (NONE, error)
    ),
    *(NONE, NONE) * 6,
]
"""Errors of a voter that has fetched from its leader. Such a voter grants no vote."""


def _vote_for_a_short_log(state: ClusterState) -> Any:
    return vote(state, replica_epoch=state.epoch + 1, last_offset_epoch=0, last_offset=0)


def _announcement(state: ClusterState, api_key: int, *, cluster_id: str | None = OWN, **given: Any) -> Any:
    """Return a BeginQuorumEpoch or EndQuorumEpoch request of the leader, with other values for some fields."""
    schema = schema_for_nodes(api_key)
    candidates = {"preferred_candidates": ()} if api_key == _END else {"voter_directory_id": None}
    partition = schema.PartitionData(
        partition_index=0, leader_id=state.controller, leader_epoch=state.epoch, **candidates
    )
    voter_id = {} if api_key == _END else {"voter_id": given.pop("voter_id", state.standby)}
    return (schema.EndQuorumEpochRequest if api_key == _END else schema.BeginQuorumEpochRequest)(
        cluster_id=state.cluster_id if cluster_id == OWN else cluster_id,
        topics=named(schema, replace(partition, **given)),
        leader_endpoints=(),
        **voter_id,
    )


def _announcements(state: ClusterState) -> Any:
    return [
        *(
            _announcement(state, api_key, **given)
            for api_key in (_BEGIN, _END)
            for given in (
                {"cluster_id": ELSEWHERE},
                {"partition_index": 1},
                {"leader_epoch": state.epoch - 1},
                {"leader_id": UNKNOWN_NODE},
                {"leader_id": -1},
                {"leader_id": state.standby},
                {"leader_epoch": 2**31 - 1},
            )
        ),
        _announcement(state, _BEGIN, voter_id=state.controller),
        _announcement(state, _BEGIN, voter_directory_id=UNKNOWN_ID),
        _announcement(state, _BEGIN),
        _announcement(state, _BEGIN, cluster_id=None),
        _announcement(state, _BEGIN, voter_id=-1),
    ]


_ANNOUNCEMENT_ERRORS: Final = [
    *(
        *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST"),
        *(NONE, "FENCED_LEADER_EPOCH", NONE, "INCONSISTENT_VOTER_SET", *(NONE, "INVALID_REQUEST") * 3),
    )
    * 2,
    *(NONE, "INVALID_VOTER_KEY") * 2,
    *(NONE, NONE) * 3,
]


def fetch(state: ClusterState, *, cluster_id: str | None = OWN, max_wait_ms: int = 0, **given: Any) -> Any:
    """Return a Fetch of the metadata log from its end, without a replica id; with other values for some fields."""
    schema, log = schema_for_nodes(_FETCH), state.quorum.log
    partition = schema.FetchPartition(
        partition=0,
        current_leader_epoch=state.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        partition_max_bytes=1_000,
    )
    topics = (schema.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(replace(partition, **given),)),)
    return schema.FetchRequest(
        cluster_id=state.cluster_id if cluster_id == OWN else cluster_id,
        max_wait=timedelta(milliseconds=max_wait_ms),
        min_bytes=0,
        topics=topics,
        forgotten_topics_data=(),
    )


def _epoch_without_records(state: ClusterState) -> int:
    """Return the newest epoch below the current one of which the log has no record."""
    epochs = {epoch for epoch, _ in state.quorum.log.partition_log.epochs.entries}
    return max(set(range(state.epoch)) - epochs)


def _fetches(state: ClusterState) -> Any:
    return [
        fetch(state, cluster_id=ELSEWHERE),
        fetch(state, partition=1),
        fetch(state, fetch_offset=-1),
        fetch(state, last_fetched_epoch=-1),
        fetch(state, last_fetched_epoch=state.epoch + 1),
        fetch(state, max_wait_ms=-1),
        fetch(state, current_leader_epoch=state.epoch - 1, last_fetched_epoch=0),
        fetch(state, current_leader_epoch=state.epoch + 1),
        fetch(state, fetch_offset=2**40),
        fetch(state, fetch_offset=0, last_fetched_epoch=_epoch_without_records(state)),
        fetch(state, cluster_id=None),
        fetch(state, fetch_offset=state.quorum.log.end_offset, max_wait_ms=20),
    ]


_FETCH_ERRORS: Final = [
    *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST"),
    *(NONE, "INVALID_REQUEST") * 4,
    *(NONE, "FENCED_LEADER_EPOCH", NONE, "UNKNOWN_LEADER_EPOCH", *(NONE,) * 8),
]


def _snapshots(state: ClusterState) -> Any:
    schema = schema_for_nodes(_FETCH_SNAPSHOT)

    def snapshot_request(cluster_id: str | None, epoch: int, partition: int = 0) -> Any:
        snapshot_id = schema.SnapshotId(end_offset=2**40, epoch=1)
        partition_snapshot = schema.PartitionSnapshot(
            partition=partition, current_leader_epoch=epoch, snapshot_id=snapshot_id, position=0
        )
        topics = (schema.TopicSnapshot(name="__cluster_metadata", partitions=(partition_snapshot,)),)
        return schema.FetchSnapshotRequest(cluster_id=cluster_id, max_bytes=1_000, topics=topics)

    return [
        snapshot_request(ELSEWHERE, state.epoch),
        snapshot_request(state.cluster_id, state.epoch, partition=1),
        snapshot_request(state.cluster_id, state.epoch - 1),
        snapshot_request(state.cluster_id, state.epoch + 1),
        snapshot_request(state.cluster_id, state.epoch),
        snapshot_request(None, state.epoch),
    ]


_SNAPSHOT_ERRORS: Final = [
    *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST", NONE, "FENCED_LEADER_EPOCH", NONE, "UNKNOWN_LEADER_EPOCH"),
    *(NONE, "SNAPSHOT_NOT_FOUND") * 2,
]


CHECKS: Final = (
    PostRunCheck("votes", Receiver.STANDBY, _votes, if_standby_has_fetched(*_VOTE_ERRORS)),
    PostRunCheck("begin and end of quorum epochs", Receiver.STANDBY, _announcements, always(*_ANNOUNCEMENT_ERRORS)),
    PostRunCheck("fetches of the metadata log", Receiver.CONTROLLER, _fetches, always(*_FETCH_ERRORS)),
    PostRunCheck("requests for snapshots", Receiver.CONTROLLER, _snapshots, always(*_SNAPSHOT_ERRORS)),
    PostRunCheck(
        "a vote for a short log", Receiver.STANDBY, _vote_for_a_short_log, always(NONE, NONE), disturbs_cluster=True
    ),
)
