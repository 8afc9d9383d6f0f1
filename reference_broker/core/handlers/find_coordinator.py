"""FindCoordinator (10), versions 0-6: the coordinator of a group.

Follows: kafka.server.KafkaApis (KIP-699).

- Groups (key type 0): the leader of the group's partition of `__consumer_offsets`. From version 4 a request can have
  several keys (KIP-699).
- COORDINATOR_NOT_AVAILABLE(15) if that partition has no live leader, or if `__consumer_offsets` does not exist. In the
  second case the topic is created.
- Another key type: INVALID_REQUEST(42) for each key. If Kafka does not know the type, each key also has the message of
  this error (`FindCoordinatorRequest.getErrorResponse`).

Gaps: transactions (key type 1) and share groups (2) return INVALID_REQUEST(42).
"""

from collections.abc import Mapping
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.handlers.cluster_view import BrokerView, ClusterView
from reference_broker.core.request import Request
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Pace, Steps

_GROUP = 0
_KNOWN_KEY_TYPES = range(3)
"""Groups, transactions and share groups (Kafka's `CoordinatorType`)."""
_SEVERAL_VERSION = 4
"""First version of requests with several keys."""
_CHARACTERS_PER_ELEMENT = 256
"""Length of a key whose hash takes as long as the rest of the lookup. A longer key counts as several elements."""
_MESSAGES = {
    ErrorCode.none: "NONE",
    ErrorCode.coordinator_not_available: "The coordinator is not available.",
    ErrorCode.invalid_request: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to"
        " an incompatible broker. See the broker logs for more details."
    ),
}
"""Kafka's error messages. From version 4 the message is empty, unless Kafka does not know the key type."""


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Find the coordinator of each key."""
    new, body = request.replies, request.body
    brokers = {listed.node_id: listed for listed in ClusterView(broker.image, request.connection.listener).brokers()}
    key_type = getattr(body, "key_type", _GROUP)
    if request.api_version < _SEVERAL_VERSION:
        found = _find(broker, brokers, key_type, body.key, now)
        return new.FindCoordinatorResponse(error_message=_MESSAGES[found["error_code"]], **found)
    message = "" if key_type in _KNOWN_KEY_TYPES else _MESSAGES[ErrorCode.invalid_request]
    coordinators = []
    pace = Pace()
    for key in body.coordinator_keys:
        if pace.is_due():
            yield
        found = _find(broker, brokers, key_type, key, now)
        coordinators.append(new.Coordinator(key=key, error_message=message, **found))
        pace.elements += len(key) // _CHARACTERS_PER_ELEMENT
    return new.FindCoordinatorResponse(coordinators=tuple(coordinators))


def _find(broker: Broker, brokers: Mapping[int, BrokerView], key_type: int, key: str, now: Now) -> dict[str, Any]:
    error, node_id, host, port = ErrorCode.none, -1, "", -1
    if key_type != _GROUP:
        error = ErrorCode.invalid_request
    elif CONSUMER_OFFSETS_TOPIC not in broker.image.topics:
        broker.topic_creation.create([CONSUMER_OFFSETS_TOPIC], now)
        error = ErrorCode.coordinator_not_available
    else:
        coordinator = _coordinator(broker, brokers, key)
        if coordinator is None:
            error = ErrorCode.coordinator_not_available
        else:
            node_id, host, port = coordinator.node_id, coordinator.host, coordinator.port
    return {"error_code": error, "node_id": node_id, "host": host, "port": port}


def _coordinator(broker: Broker, brokers: Mapping[int, BrokerView], group: str) -> BrokerView | None:
    """Return the broker that leads the group's partition; null if there is none among `brokers`.

    :param brokers: the live brokers with the client's listener, by id.
    """
    partition = broker.image.partition(CONSUMER_OFFSETS_TOPIC, broker.groups.partition_of(group))
    return None if partition is None else brokers.get(partition.leader)
