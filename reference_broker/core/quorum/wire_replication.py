"""Conversion of Fetch and FetchSnapshot to and from kio's entities.

Follows: org.apache.kafka.raft.RaftUtil (KIP-595, KIP-630).

A diverging epoch or snapshot id that is null has offset -1 and epoch -1 in an entity.
"""

from datetime import timedelta
from typing import Any

from reference_broker.core.quorum.messages import (
    METADATA_TOPIC_ID,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
)
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet
from reference_broker.core.quorum.wire_parts import METADATA_PARTITION, node_endpoints, single_partition
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.schemas import request_schema, response_schema

_FETCH = (1, 18)
_FETCH_SNAPSHOT = (59, 1)
"""API keys and versions."""


def _snapshot_id(module: Any, snapshot_id: OffsetAndEpoch | None) -> Any:
    encoded = snapshot_id or OffsetAndEpoch(-1, -1)
    return module.SnapshotId(end_offset=encoded.offset, epoch=encoded.epoch)


def _offset_and_epoch(end_offset: int, epoch: int) -> OffsetAndEpoch | None:
    return None if end_offset < 0 and epoch < 0 else OffsetAndEpoch(int(end_offset), int(epoch))


# Fetch


def fetch_request_to_kio(request: FetchRequest) -> Any:
    """Convert a request to kio's entity."""
    module = request_schema(*_FETCH)
    partition = module.FetchPartition(
        partition=METADATA_PARTITION,
        current_leader_epoch=request.current_leader_epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_fetched_epoch,
        partition_max_bytes=request.max_bytes,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return module.FetchRequest(
        cluster_id=request.cluster_id or None,
        replica_state=module.ReplicaState(replica_id=request.replica.id),
        max_wait=timedelta(milliseconds=request.max_wait_ms),
        min_bytes=0,
        max_bytes=request.max_bytes,
        topics=(module.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def fetch_request_from_kio(entity: Any) -> FetchRequest:
    """Convert kio's entity to a request."""
    partition = single_partition(entity.topics, "topic_id", METADATA_TOPIC_ID, "partition")
    return FetchRequest(
        entity.cluster_id or "",
        ReplicaKey(entity.replica_state.replica_id, partition.replica_directory_id),
        partition.current_leader_epoch,
        partition.fetch_offset,
        partition.last_fetched_epoch,
        milliseconds(entity.max_wait),
        entity.max_bytes,
        partition.high_watermark,
    )


def fetch_response_to_kio(response: FetchResponse, voters: VoterSet) -> Any:
    """Convert a response to kio's entity."""
    module = response_schema(*_FETCH)
    no_wait = timedelta(0)
    if response.top_level_error is not ErrorCode.none:
        return module.FetchResponse(throttle_time=no_wait, error_code=response.top_level_error, responses=())
    diverging = response.diverging or OffsetAndEpoch(-1, -1)
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=response.error,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        diverging_epoch=module.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset),
        current_leader=module.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.leader_epoch),
        snapshot_id=_snapshot_id(module, response.snapshot_id),
        aborted_transactions=None,
        records=response.records,
    )
    return module.FetchResponse(
        throttle_time=no_wait,
        error_code=ErrorCode.none,
        responses=(module.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        node_endpoints=node_endpoints(module, response.leader_id, voters),
    )


def fetch_response_from_kio(entity: Any) -> FetchResponse:
    """Convert kio's entity to a response."""
    if entity.error_code is not ErrorCode.none:
        return FetchResponse(top_level_error=entity.error_code)
    partition = single_partition(entity.responses, "topic_id", METADATA_TOPIC_ID, "partition_index")
    diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
    return FetchResponse(
        partition.current_leader.leader_id,
        partition.current_leader.leader_epoch,
        partition.high_watermark,
        partition.log_start_offset,
        _offset_and_epoch(diverging.end_offset, diverging.epoch),
        _offset_and_epoch(snapshot_id.end_offset, snapshot_id.epoch),
        bytes(partition.records or b""),
        partition.error_code,
    )


# FetchSnapshot


def snapshot_request_to_kio(request: FetchSnapshotRequest) -> Any:
    """Convert a request to kio's entity."""
    module = request_schema(*_FETCH_SNAPSHOT)
    partition = module.PartitionSnapshot(
        partition=METADATA_PARTITION,
        current_leader_epoch=request.current_leader_epoch,
        snapshot_id=_snapshot_id(module, request.snapshot_id),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return module.FetchSnapshotRequest(
        cluster_id=request.cluster_id or None,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=(module.TopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=(partition,)),),
    )


def snapshot_request_from_kio(entity: Any) -> FetchSnapshotRequest:
    """Convert kio's entity to a request."""
    partition = single_partition(entity.topics, "name", CLUSTER_METADATA_TOPIC, "partition")
    snapshot_id = partition.snapshot_id
    return FetchSnapshotRequest(
        entity.cluster_id or "",
        ReplicaKey(entity.replica_id, partition.replica_directory_id),
        partition.current_leader_epoch,
        OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch),
        partition.position,
        entity.max_bytes,
    )


def snapshot_response_to_kio(response: FetchSnapshotResponse, voters: VoterSet) -> Any:
    """Convert a response to kio's entity."""
    module = response_schema(*_FETCH_SNAPSHOT)
    no_wait = timedelta(0)
    if response.top_level_error is not ErrorCode.none:
        return module.FetchSnapshotResponse(throttle_time=no_wait, error_code=response.top_level_error, topics=())
    partition = module.PartitionSnapshot(
        index=METADATA_PARTITION,
        error_code=response.error,
        snapshot_id=_snapshot_id(module, response.snapshot_id),
        current_leader=module.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.leader_epoch),
        size=response.size,
        position=response.position,
        unaligned_records=response.data,
    )
    return module.FetchSnapshotResponse(
        throttle_time=no_wait,
        error_code=ErrorCode.none,
        topics=(module.TopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=(partition,)),),
        node_endpoints=node_endpoints(module, response.leader_id, voters),
    )


def snapshot_response_from_kio(entity: Any) -> FetchSnapshotResponse:
    """Convert kio's entity to a response."""
    if entity.error_code is not ErrorCode.none:
        return FetchSnapshotResponse(top_level_error=entity.error_code)
    partition = single_partition(entity.topics, "name", CLUSTER_METADATA_TOPIC, "index")
    return FetchSnapshotResponse(
        partition.current_leader.leader_id,
        partition.current_leader.leader_epoch,
        _offset_and_epoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        partition.size,
        partition.position,
        bytes(partition.unaligned_records or b""),
        partition.error_code,
    )
