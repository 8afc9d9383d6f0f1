"""Conversion of the quorum's messages to and from kio's entities, in the newest versions.

Follows: org.apache.kafka.raft.RaftUtil.

| message          | version | introduced by                                      |
|------------------|---------|----------------------------------------------------|
| Vote             | 2       | KIP-996, pre-vote                                  |
| BeginQuorumEpoch | 1       | KIP-853, directory ids and endpoints               |
| EndQuorumEpoch   | 1       | KIP-853, directory ids and endpoints               |
| Fetch            | 18      | KIP-1166, high watermark of the follower           |
| FetchSnapshot    | 1       | KIP-853, directory id of the follower              |

Rules of this file:
- The only topic partition is `__cluster_metadata-0`. A message with another partition, or with more than one, raises
  `UnknownPartitionError`. A request is then rejected with INVALID_REQUEST; a response counts as a failed request.
- Records and snapshots are not decoded.
- Endpoints of the leader are sent, but not read: all nodes have the same voter set, which contains them.
"""

from collections.abc import Callable
from typing import Any

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
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.voters import VoterSet

_REQUESTS: dict[int, Callable[[Any], Request]] = {
    1: replication.fetch_request_from_kio,
    52: elections.vote_request_from_kio,
    53: elections.begin_request_from_kio,
    54: elections.end_request_from_kio,
    59: replication.snapshot_request_from_kio,
}
"""Converters of kio's request entities, by API key."""
_RESPONSES: dict[int, Callable[[Any], Response]] = {
    1: replication.fetch_response_from_kio,
    52: elections.vote_response_from_kio,
    53: elections.begin_response_from_kio,
    54: elections.end_response_from_kio,
    59: replication.snapshot_response_from_kio,
}
"""Converters of kio's response entities, by API key."""


def request_to_kio(request: Request, voters: VoterSet) -> Any:
    """Convert a request to kio's entity."""
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
    """Convert kio's entity to a request. Raises `UnknownPartitionError`."""
    return _REQUESTS[entity.__api_key__](entity)


def response_to_kio(response: Response, voters: VoterSet) -> Any:
    """Convert a response to kio's entity."""
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
    """Convert kio's entity to a response. Raises `UnknownPartitionError`."""
    return _RESPONSES[entity.__api_key__](entity)
