"""DescribeCluster (60), versions 1-2, on a controller's listener: the endpoints of the controllers.

Follows: kafka.server.ControllerApis (KIP-919).

- A request with the endpoint type BROKER: MISMATCHED_ENDPOINT_TYPE(114). A request with an unknown type:
  UNSUPPORTED_ENDPOINT_TYPE(115).
- The controller id is the id of the active controller; -1 if this node does not know it.
"""

from typing import Any

from reference_broker.core.api import ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.handlers.cluster_view import CLUSTER_OPERATIONS
from reference_broker.core.handlers.describe_cluster import EndpointType, wrong_endpoint
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def handle(node: ServingNode, request: Request, now: Now) -> Any:
    """Describe the voters of the quorum."""
    new, body, voters = request.replies, request.body, node.quorum.voters
    if body.endpoint_type != EndpointType.CONTROLLER:
        return wrong_endpoint(request, EndpointType.CONTROLLER)
    known = (voter for voter in map(voters.get, voters.ids) if voter is not None)
    return new.DescribeClusterResponse(
        error_code=ErrorCode.none,
        error_message=None,
        endpoint_type=EndpointType.CONTROLLER,
        cluster_id=node.runtime.identity.cluster_id,
        controller_id=node.quorum.state.leader_id,
        brokers=tuple(
            new.DescribeClusterBroker(
                broker_id=voter.key.id, host=voter.host, port=voter.port, rack=None, is_fenced=False
            )
            for voter in known
        ),
        # The smallest number means that the operations were not requested.
        cluster_authorized_operations=CLUSTER_OPERATIONS if body.include_cluster_authorized_operations else -(2**31),
    )
