"""DescribeCluster (60), versions 0-2: the cluster's id, controller and brokers (KIP-700).

- Brokers at the addresses of the listener by which the client came. The controller that is named is a broker that
  forwards to it.
- From version 1 a client says which kind of endpoint it wants; this listener is a broker's, so controllers (2) are
  MISMATCHED_ENDPOINT_TYPE(114) and any other number UNSUPPORTED_ENDPOINT_TYPE(115) (KIP-919).
- Version 2 may ask for fenced brokers too (KIP-1073).
"""

from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.cluster_view import ClusterView
from reference_broker.core.handlers.operations import CLUSTER_OPERATIONS
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_BROKERS, _CONTROLLERS = 1, 2


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The cluster."""
    new = request.replies
    endpoint_type = getattr(request.body, "endpoint_type", _BROKERS)
    if endpoint_type != _BROKERS:
        return _wrong_endpoint(request, endpoint_type)
    view = ClusterView(broker.image, request.connection.listener)
    operations = CLUSTER_OPERATIONS if request.body.include_cluster_authorized_operations else -(2**31)
    return new.DescribeClusterResponse(
        error_code=ErrorCode.none,
        cluster_id=broker.identity.cluster_id,
        controller_id=view.controller(broker.identity.node_id),
        brokers=tuple(
            new.DescribeClusterBroker(
                broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack, is_fenced=node.fenced
            )
            for node in view.brokers(with_fenced=getattr(request.body, "include_fenced_brokers", False))
        ),
        cluster_authorized_operations=operations,
    )


def _wrong_endpoint(request: Request, endpoint_type: int) -> Any:
    if endpoint_type == _CONTROLLERS:
        error = ErrorCode.mismatched_endpoint_type
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    else:
        error, message = ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {endpoint_type}"
    return request.replies.DescribeClusterResponse(error_code=error, error_message=message, cluster_id="", brokers=())
