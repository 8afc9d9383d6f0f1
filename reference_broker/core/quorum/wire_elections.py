"""Conversion of Vote, BeginQuorumEpoch and EndQuorumEpoch to and from kio's entities.

Follows: org.apache.kafka.raft.RaftUtil (KIP-595, KIP-996).
"""

from typing import Any

from reference_broker.core.quorum.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    OffsetAndEpoch,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet
from reference_broker.core.quorum.wire_parts import (
    METADATA_PARTITION,
    leader_endpoints,
    named,
    named_partition,
    node_endpoints,
)
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.schemas import request_schema, response_schema

_VOTE = (52, 2)
_BEGIN_QUORUM_EPOCH = (53, 1)
_END_QUORUM_EPOCH = (54, 1)
"""API keys and versions."""

# Vote


def vote_request_to_kio(request: VoteRequest) -> Any:
    """Convert a request to kio's entity."""
    module = request_schema(*_VOTE)
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        replica_epoch=request.replica_epoch,
        replica_id=request.replica.id,
        replica_directory_id=request.replica.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.last.epoch,
        last_offset=request.last.offset,
        pre_vote=request.pre_vote,
    )
    topics = named(module, partition)
    return module.VoteRequest(cluster_id=request.cluster_id or None, voter_id=request.voter.id, topics=topics)


def vote_request_from_kio(entity: Any) -> VoteRequest:
    """Convert kio's entity to a request."""
    partition = named_partition(entity.topics)
    return VoteRequest(
        entity.cluster_id or "",
        ReplicaKey(entity.voter_id, partition.voter_directory_id),
        ReplicaKey(partition.replica_id, partition.replica_directory_id),
        partition.replica_epoch,
        OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch),
        partition.pre_vote,
    )


def vote_response_to_kio(response: VoteResponse, voters: VoterSet) -> Any:
    """Convert a response to kio's entity."""
    module = response_schema(*_VOTE)
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
        vote_granted=response.vote_granted,
    )
    return _whole(module, module.VoteResponse, response, partition, voters)


def _whole(module: Any, entity_type: Any, response: Any, partition: Any, voters: VoterSet) -> Any:
    """Return the response entity. It has no partition if the response has a top-level error."""
    if response.top_level_error is not ErrorCode.none:
        return entity_type(error_code=response.top_level_error, topics=())
    endpoints = node_endpoints(module, response.leader_id, voters)
    return entity_type(error_code=ErrorCode.none, topics=named(module, partition), node_endpoints=endpoints)


def vote_response_from_kio(entity: Any) -> VoteResponse:
    """Convert kio's entity to a response."""
    if entity.error_code is not ErrorCode.none:
        return VoteResponse(top_level_error=entity.error_code)
    partition = named_partition(entity.topics)
    return VoteResponse(partition.leader_id, partition.leader_epoch, partition.vote_granted, partition.error_code)


# BeginQuorumEpoch and EndQuorumEpoch


def begin_request_to_kio(request: BeginQuorumEpochRequest, voters: VoterSet) -> Any:
    """Convert a request to kio's entity."""
    module = request_schema(*_BEGIN_QUORUM_EPOCH)
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        voter_directory_id=request.voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.leader_epoch,
    )
    return module.BeginQuorumEpochRequest(
        cluster_id=request.cluster_id or None,
        voter_id=request.voter.id,
        topics=named(module, partition),
        leader_endpoints=leader_endpoints(module, request.leader_id, voters),
    )


def begin_request_from_kio(entity: Any) -> BeginQuorumEpochRequest:
    """Convert kio's entity to a request."""
    partition = named_partition(entity.topics)
    voter = ReplicaKey(entity.voter_id, partition.voter_directory_id)
    return BeginQuorumEpochRequest(entity.cluster_id or "", voter, partition.leader_id, partition.leader_epoch)


def end_request_to_kio(request: EndQuorumEpochRequest, voters: VoterSet) -> Any:
    """Convert a request to kio's entity."""
    module = request_schema(*_END_QUORUM_EPOCH)
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.leader_epoch,
        preferred_candidates=tuple(
            module.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in request.preferred_candidates
        ),
    )
    return module.EndQuorumEpochRequest(
        cluster_id=request.cluster_id or None,
        topics=named(module, partition),
        leader_endpoints=leader_endpoints(module, request.leader_id, voters),
    )


def end_request_from_kio(entity: Any) -> EndQuorumEpochRequest:
    """Convert kio's entity to a request."""
    partition = named_partition(entity.topics)
    candidates = tuple(
        ReplicaKey(candidate.candidate_id, candidate.candidate_directory_id)
        for candidate in partition.preferred_candidates
    )
    return EndQuorumEpochRequest(entity.cluster_id or "", partition.leader_id, partition.leader_epoch, candidates)


def election_response_to_kio(response: BeginQuorumEpochResponse | EndQuorumEpochResponse, voters: VoterSet) -> Any:
    """Convert a response to kio's entity; both APIs have the same fields."""
    is_begin = isinstance(response, BeginQuorumEpochResponse)
    module = response_schema(*(_BEGIN_QUORUM_EPOCH if is_begin else _END_QUORUM_EPOCH))
    entity_type = module.BeginQuorumEpochResponse if is_begin else module.EndQuorumEpochResponse
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
    )
    return _whole(module, entity_type, response, partition, voters)


def begin_response_from_kio(entity: Any) -> BeginQuorumEpochResponse:
    """Convert kio's entity to a response."""
    if entity.error_code is not ErrorCode.none:
        return BeginQuorumEpochResponse(top_level_error=entity.error_code)
    partition = named_partition(entity.topics)
    return BeginQuorumEpochResponse(partition.leader_id, partition.leader_epoch, partition.error_code)


def end_response_from_kio(entity: Any) -> EndQuorumEpochResponse:
    """Convert kio's entity to a response."""
    if entity.error_code is not ErrorCode.none:
        return EndQuorumEpochResponse(top_level_error=entity.error_code)
    partition = named_partition(entity.topics)
    return EndQuorumEpochResponse(partition.leader_id, partition.leader_epoch, partition.error_code)
