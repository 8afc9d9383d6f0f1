"""Automatic creation of missing topics that a client requests, and of internal topics.

Follows: kafka.server.AutoTopicCreationManager.

The client receives UNKNOWN_TOPIC_OR_PARTITION (for `__consumer_offsets` COORDINATOR_NOT_AVAILABLE) at once, and
retries. For each name, at most one CreateTopics request is in flight. Its response is ignored: the topic appears in the
metadata, or the client's next request repeats the creation.

At most `_IN_FLIGHT_MAX` topics are in flight, and further names are ignored. So a request for thousands of topics never
blocks the node, and each retry of the client creates some of the topics. Kafka forwards all names, and its controller
rejects a request for more than 10,000 partitions.
"""

from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from typing import Any

from reference_broker.core.broker_lifecycle_manager import ControllerChannel
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.schemas import request_schema

_CREATE_TOPICS = (19, 7)
"""API key and version."""
_TIMEOUT_MS = 30_000
_IN_FLIGHT_MAX = 200
"""Maximum number of topics whose creation is in flight."""


class AutoTopicCreationManager:
    """Creator of missing topics.

    :param send_to_controller: sends a request to the active controller.
    """

    def __init__(self, send_to_controller: ControllerChannel, configuration: BrokerConfiguration) -> None:
        self._send_to_controller = send_to_controller
        self._configuration = configuration
        self._under_way: set[str] = set()

    def create(self, names: Iterable[str], now: Now) -> None:
        """Create topics with the defaults of the broker's configuration.

        Names whose creation is in flight, and names above the limit of topics in flight, are ignored.
        """
        unknown = (name for name in names if name not in self._under_way)
        missing = [*islice(unknown, _IN_FLIGHT_MAX - len(self._under_way))]
        if not missing:
            return
        self._under_way.update(missing)

        def on_response(response: Any, now: Now) -> None:
            self._under_way.difference_update(missing)

        self._send_to_controller(_request(missing, self._configuration), on_response, timeout_ms=_TIMEOUT_MS, now=now)


def _request(names: Iterable[str], configuration: BrokerConfiguration) -> Any:
    return request_schema(*_CREATE_TOPICS).CreateTopicsRequest(
        topics=tuple(_topic(name, configuration) for name in names), timeout=timedelta(milliseconds=_TIMEOUT_MS)
    )


def _topic(name: str, configuration: BrokerConfiguration) -> Any:
    number = configuration.integer
    num_partitions, replication_factor = number("num.partitions"), number("default.replication.factor")
    overrides: dict[str, str] = {}
    if name == CONSUMER_OFFSETS_TOPIC:
        num_partitions = number("offsets.topic.num.partitions")
        replication_factor = number("offsets.topic.replication.factor")
        overrides = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(number("offsets.topic.segment.bytes")),
        }
    module = request_schema(*_CREATE_TOPICS)
    return module.CreatableTopic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(module.CreatableTopicConfig(name=config, value=value) for config, value in overrides.items()),
    )
