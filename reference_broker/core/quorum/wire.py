"""The messages of the quorum as kio has them: requests and responses of Kafka, in their newest versions, and back.

| message          | version | since                                              |
|------------------|---------|----------------------------------------------------|
| Vote             | 2       | KIP-996, pre-vote                                  |
| BeginQuorumEpoch | 1       | KIP-853, directory ids and endpoints               |
| EndQuorumEpoch   | 1       | KIP-853                                            |
| Fetch            | 18      | KIP-1166, the follower tells its high watermark    |
| FetchSnapshot    | 1       | KIP-853                                            |
| DescribeQuorum   | 2       | KIP-853                                            |

Rules of this file:
- There is one topic partition, `__cluster_metadata-0`. A request for another one, or for more, is an
  `UnknownPartitionError`; the one who answers it knows the error of its API.
- Records and snapshots are bytes on both sides.
- Endpoints of the leader come from the voter set: all nodes are configured with the same one.
"""

from collections.abc import Callable
from typing import Any

from kio.schema.begin_quorum_epoch.v1 import request as begin_request
from kio.schema.begin_quorum_epoch.v1 import response as begin_response
from kio.schema.describe_quorum.v2 import response as describe_response
from kio.schema.end_quorum_epoch.v1 import request as end_request
from kio.schema.end_quorum_epoch.v1 import response as end_response
from kio.schema.fetch.v18 import request as fetch_request
from kio.schema.fetch.v18 import response as fetch_response
from kio.schema.fetch_snapshot.v1 import request as snapshot_request
from kio.schema.fetch_snapshot.v1 import response as snapshot_response
from kio.schema.vote.v2 import request as vote_request
from kio.schema.vote.v2 import response as vote_response

from reference_broker.core.quorum import wire_elections as elections
from reference_broker.core.quorum import wire_replication as replication
from reference_broker.core.quorum.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumDescription,
    ReplicaDescription,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.voters import VoterSet
from reference_broker.core.quorum.wire_parts import CONTROLLER_LISTENER, METADATA_PARTITION, named
from reference_broker.protocol.errors import ErrorCode

_REQUESTS: dict[type, Callable[[Any], Request]] = {
    vote_request.VoteRequest: elections.vote_request_from_kio,
    begin_request.BeginQuorumEpochRequest: elections.begin_request_from_kio,
    end_request.EndQuorumEpochRequest: elections.end_request_from_kio,
    fetch_request.FetchRequest: replication.fetch_request_from_kio,
    snapshot_request.FetchSnapshotRequest: replication.snapshot_request_from_kio,
}
_RESPONSES: dict[type, Callable[[Any], Response]] = {
    vote_response.VoteResponse: elections.vote_response_from_kio,
    begin_response.BeginQuorumEpochResponse: elections.begin_response_from_kio,
    end_response.EndQuorumEpochResponse: elections.end_response_from_kio,
    fetch_response.FetchResponse: replication.fetch_response_from_kio,
    snapshot_response.FetchSnapshotResponse: replication.snapshot_response_from_kio,
}


def request_to_kio(request: Request, voters: VoterSet) -> Any:
    """The request as kio's entity."""
    match request:
        case VoteRequest():
            return elections.vote_request_to_kio(request)
        case BeginQuorumEpochRequest():
            return elections.begin_request_to_kio(request, voters)
        case EndQuorumEpochRequest():
            return elections.end_request_to_kio(request, voters)
        case FetchRequest():
            return replication.fetch_request_to_kio(request)
        case FetchSnapshotRequest():
            return replication.snapshot_request_to_kio(request)


def request_from_kio(entity: Any) -> Request:
    """The request in kio's entity. Raises `UnknownPartitionError`."""
    return _REQUESTS[type(entity)](entity)


def response_to_kio(response: Response, voters: VoterSet) -> Any:
    """The response as kio's entity."""
    match response:
        case VoteResponse():
            return elections.vote_response_to_kio(response, voters)
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            return elections.election_response_to_kio(response, voters)
        case FetchResponse():
            return replication.fetch_response_to_kio(response, voters)
        case FetchSnapshotResponse():
            return replication.snapshot_response_to_kio(response, voters)


def response_from_kio(entity: Any) -> Response:
    """The response in kio's entity. Raises `UnknownPartitionError`."""
    return _RESPONSES[type(entity)](entity)


def description_to_kio(description: QuorumDescription, voters: VoterSet) -> Any:
    """The answer of a leader to DescribeQuorum."""
    module: Any = describe_response
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=ErrorCode.none,
        error_message=None,
        leader_id=description.leader_id,
        leader_epoch=description.leader_epoch,
        high_watermark=description.high_watermark,
        current_voters=tuple(_replica(replica) for replica in description.voters),
        observers=tuple(_replica(replica) for replica in description.observers),
    )
    known = [voter for voter in map(voters.get, voters.ids) if voter is not None]
    return module.DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=None,
        topics=named(module, partition),
        nodes=tuple(
            module.Node(
                node_id=voter.key.id,
                listeners=(module.Listener(name=CONTROLLER_LISTENER, host=voter.host, port=voter.port),),
            )
            for voter in known
        ),
    )


def _replica(replica: ReplicaDescription) -> Any:
    module: Any = describe_response
    return module.ReplicaState(
        replica_id=replica.key.id,
        replica_directory_id=replica.key.directory_id,
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=replica.last_fetch_timestamp_ms,
        last_caught_up_timestamp=replica.last_caught_up_timestamp_ms,
    )
