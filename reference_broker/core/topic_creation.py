"""Topics that a broker has created on its own account: what a client names and is not there, and internal ones.

Who asks is told at once that there is no such topic, and asks again (Kafka's `AutoTopicCreationManager`). A name is
asked of the controller once at a time. What it answers is passed over: the topic comes with the metadata, or the next
client asks again.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kio.schema.create_topics.v7 import request as schema

from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC

if TYPE_CHECKING:
    from reference_broker.core.broker import Broker

_PURPOSE = "forwarding"
_TIMEOUT_MS = 30_000


class TopicCreation:
    """The topics that are asked for and not there yet."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._under_way: set[str] = set()

    def create(self, names: Iterable[str], now: Now) -> None:
        """Have these created, as the broker's configuration says, unless that is under way."""
        missing = [name for name in names if name not in self._under_way]
        if not missing:
            return
        self._under_way.update(missing)

        def answered(response: Any, now: Now) -> None:
            self._under_way.difference_update(missing)

        request = _request(missing, self._broker.configuration)
        self._broker.ask_controller(_PURPOSE, request, answered, timeout_ms=_TIMEOUT_MS, now=now)


def _request(names: Iterable[str], configuration: BrokerConfiguration) -> schema.CreateTopicsRequest:
    make: Any = schema.CreateTopicsRequest
    request: schema.CreateTopicsRequest = make(
        topics=tuple(_topic(name, configuration) for name in names), timeout=timedelta(milliseconds=_TIMEOUT_MS)
    )
    return request


def _topic(name: str, configuration: BrokerConfiguration) -> schema.CreatableTopic:
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
    make_topic: Any = schema.CreatableTopic
    make_config: Any = schema.CreatableTopicConfig
    topic: schema.CreatableTopic = make_topic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(make_config(name=config, value=value) for config, value in overrides.items()),
    )
    return topic
