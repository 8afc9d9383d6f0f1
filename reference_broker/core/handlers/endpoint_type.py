"""What kind of endpoint a client wants described (KIP-919), and the answer where it came to one of the other kind."""

from enum import IntEnum
from typing import Any

from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


class EndpointType(IntEnum):
    """Kafka's numbers."""

    BROKER = 1
    CONTROLLER = 2


def wrong_endpoint(request: Request, own: EndpointType) -> Any:
    """The answer to a DescribeCluster that asks for another type than that of the listener it came to."""
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
