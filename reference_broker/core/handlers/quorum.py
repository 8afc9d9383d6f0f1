"""Requests among the nodes of the quorum, on the controller's listener.

Follows: kafka.server.ControllerApis (KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166).

| API               | key | version |
|-------------------|-----|---------|
| Fetch             | 1   | 18      |
| Vote              | 52  | 2       |
| BeginQuorumEpoch  | 53  | 1       |
| EndQuorumEpoch    | 54  | 1       |
| FetchSnapshot     | 59  | 1       |

The module `quorum.raft_client` handles these requests. A request for a partition other than `__cluster_metadata-0` gets
INVALID_REQUEST(42) as its top-level error.
"""

from typing import Any

from reference_broker.core.api import ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.quorum.wire import request_from_kio
from reference_broker.core.quorum.wire_parts import UnknownPartitionError
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.protocol.errors import ErrorCode


def fetch(node: ServingNode, request: Request, now: Now) -> Any:
    """Return records of the metadata log."""
    return _handle(node, request, now, request.replies.FetchResponse, responses=())


def vote(node: ServingNode, request: Request, now: Now) -> Any:
    """Handle a vote or pre-vote."""
    return _handle(node, request, now, request.replies.VoteResponse, topics=())


def begin_quorum_epoch(node: ServingNode, request: Request, now: Now) -> Any:
    """Handle the announcement of a leader."""
    return _handle(node, request, now, request.replies.BeginQuorumEpochResponse, topics=())


def end_quorum_epoch(node: ServingNode, request: Request, now: Now) -> Any:
    """Handle the resignation of the leader."""
    return _handle(node, request, now, request.replies.EndQuorumEpochResponse, topics=())


def fetch_snapshot(node: ServingNode, request: Request, now: Now) -> Any:
    """Return a part of a snapshot."""
    return _handle(node, request, now, request.replies.FetchSnapshotResponse, topics=())


def _handle(node: ServingNode, request: Request, now: Now, response: Any, **empty: Any) -> Any:
    """Pass the request to the Raft client, which returns the response as an effect.

    :param response: class of the response.
    :param empty: the empty arrays of a response with a top-level error.
    """
    try:
        quorum_request = request_from_kio(request.body)
    except UnknownPartitionError:
        return response(error_code=ErrorCode.invalid_request, **empty)
    node.handle_quorum_request(request, quorum_request, now)
    return RequestOutcome.DEFERRED
