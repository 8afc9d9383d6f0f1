"""ListConfigResources (74), versions 0-1: the resources that have configurations.

Follows: kafka.server.KafkaApis (KIP-714, KIP-1142).

- The response has the resources of the requested types, or of all types if none is requested. An unsupported type:
  UNSUPPORTED_VERSION(35). Each live broker is a resource of two types: broker and broker logger.
- In version 0 a request has no types, and selects client metrics.

Gaps: groups and client metrics have no configurations, so none is listed.
"""

from collections.abc import Iterator
from typing import Any, Final

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.handlers.cluster_view import ClusterView
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_GROUP: Final = 32
_SUPPORTED: Final = frozenset({*ResourceType, _LOGGER, _CLIENT_METRICS, _GROUP})


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """List the resources."""
    new = request.replies
    supported = _SUPPORTED if request.api_version else {_CLIENT_METRICS}
    types = set(getattr(request.body, "resource_types", ())) or supported
    if not types <= supported:
        return new.ListConfigResourcesResponse(error_code=ErrorCode.unsupported_version, config_resources=())
    return new.ListConfigResourcesResponse(
        error_code=ErrorCode.none,
        config_resources=tuple(
            new.ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type, name in _resources(broker, request)
            if resource_type in types
        ),
    )


def _resources(broker: Broker, request: Request) -> Iterator[tuple[int, str]]:
    """Yield the type and name of each resource, in Kafka's order of types."""
    brokers = ClusterView(broker.image, request.connection.listener).brokers()
    for resource_type in (_LOGGER, ResourceType.BROKER):
        yield from ((resource_type, str(each.node_id)) for each in brokers)
    yield from ((ResourceType.TOPIC, name) for name in broker.image.topics)
