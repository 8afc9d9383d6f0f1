"""Topics that a broker has created on its own account: what a client names and is not there, and internal ones.

Who asks is told at once that there is no such topic, and asks again (Kafka's `AutoTopicCreationManager`). A name is
asked of the controller once at a time. What it answers is passed over: the topic comes with the metadata, or the next
client asks again.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from reference_broker.core.broker_lifecycle_manager import AskController
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.schemas import request_schema

_CREATE_TOPICS = (19, 7)
"""API key and version."""
_TIMEOUT_MS = 30_000


class AutoTopicCreationManager:
    """The topics that are requested and not there yet.

    :param ask: the way to the active controller.
    """

    def __init__(self, ask: AskController, configuration: BrokerConfiguration) -> None:
        self._ask = ask
        self._configuration = configuration
        self._under_way: set[str] = set()

    def create(self, names: Iterable[str], now: Now) -> None:
        """Have these created, as the broker's configuration says, unless that is under way."""
        missing = [name for name in names if name not in self._under_way]
        if not missing:
            return
        self._under_way.update(missing)

        def answered(response: Any, now: Now) -> None:
            self._under_way.difference_update(missing)

        self._ask(_request(missing, self._configuration), answered, timeout_ms=_TIMEOUT_MS, now=now)


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
