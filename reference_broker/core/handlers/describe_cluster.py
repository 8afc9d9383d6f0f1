"""DescribeCluster (60), versions 0-2: the cluster's id, controller and brokers.

Follows: kafka.server.KafkaApis (KIP-700, KIP-919, KIP-1073).

- The response has the brokers with their endpoints on the client's listener. The controller id is the id of a broker
  that forwards requests to the controller.
- From version 1 a request has an endpoint type (KIP-919). A broker's listener rejects the type CONTROLLER with
  MISMATCHED_ENDPOINT_TYPE(114), and an unknown type with UNSUPPORTED_ENDPOINT_TYPE(115).
- Version 2 can include fenced brokers (KIP-1073).
"""

from enum import IntEnum
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.cluster_view import CLUSTER_OPERATIONS, ClusterView
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


class EndpointType(IntEnum):
    """Type of an endpoint, with the numbers of `org.apache.kafka.clients.admin.EndpointType`."""

    BROKER = 1
    CONTROLLER = 2


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Describe the cluster."""
    new = request.replies
    if getattr(request.body, "endpoint_type", EndpointType.BROKER) != EndpointType.BROKER:
        return wrong_endpoint(request, EndpointType.BROKER)
    view = ClusterView(broker.image, request.connection.listener)
    # The smallest number means that the operations were not requested.
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


def wrong_endpoint(request: Request, own: EndpointType) -> Any:
    """Return the error for a request whose endpoint type is not the type of the listener.

    :param own: type of the listener.
    """
    wanted = request.body.endpoint_type
    if wanted in set(EndpointType):
        error = ErrorCode.mismatched_endpoint_type
        message = (
            f"The request was sent to an endpoint of type {own.name},"
            f" but we wanted an endpoint of type {EndpointType(wanted).name}"
        )
    else:
        error, message = ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {wanted}"
    return request.replies.DescribeClusterResponse(error_code=error, error_message=message, cluster_id="", brokers=())
