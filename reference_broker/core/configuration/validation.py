"""Validation of topic properties and of dynamic broker properties, with Kafka's messages.

Follows: org.apache.kafka.storage.internals.log.LogConfig, kafka.server.DynamicBrokerConfig.

Unknown broker properties are accepted, since they may be meant for a plug-in.

Gaps: dynamic changes of listeners are rejected, and those of threads and caches have no effect.
"""

from collections.abc import Mapping

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, DYNAMIC_BROKER_CONFIGS, TOPIC_CONFIG_KEYS
from reference_broker.core.configuration.read_only import UNUSED_READ_ONLY_CONFIGS

_READ_ONLY = (BROKER_CONFIG_KEYS.keys() - DYNAMIC_BROKER_CONFIGS) | UNUSED_READ_ONLY_CONFIGS


def validate_topic_overrides(overrides: Mapping[str, str | None], broker: BrokerConfiguration) -> dict[str, str]:
    """Validate and return a topic's properties. Raises `InvalidConfigError` for the first invalid one.

    :param broker: the broker's configuration, with the defaults of properties that the topic does not set. They are
        needed because some properties are validated together.
    """
    without_value = [name for name, text in overrides.items() if text is None]
    if without_value:
        raise InvalidConfigError(f"Null value not supported for topic configs: {','.join(without_value)}")
    valid = {name: text for name, text in overrides.items() if text is not None}
    for name in valid:
        if name not in TOPIC_CONFIG_KEYS:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
    for name, text in valid.items():
        TOPIC_CONFIG_KEYS[name].parse(text)
    topic = broker.topic(valid)
    least, most = topic.integer("min.compaction.lag.ms"), topic.integer("max.compaction.lag.ms")
    if least > most:
        raise InvalidConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
    if topic.value("remote.storage.enable"):
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )
    return valid


def validate_dynamic(properties: Mapping[str, str]) -> None:
    """Validate all dynamic properties of a broker or of all brokers. Raises `InvalidConfigError`."""
    read_only = sorted(_READ_ONLY.intersection(properties))
    if read_only:
        raise InvalidConfigError(f"Cannot update these configs dynamically: [{', '.join(read_only)}]")
    for name, text in properties.items():
        if name in BROKER_CONFIG_KEYS:
            BROKER_CONFIG_KEYS[name].parse(text)
