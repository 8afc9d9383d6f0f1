"""What is in force: a broker's own properties, and a topic's, each with the sources that it could come from.

A topic's property is its own where it sets one, else the broker's, else the default. A value that came from the broker
keeps the name it has there, which is what DescribeConfigs calls a synonym.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reference_broker.core.configuration.key import ConfigSource, InvalidConfigError, Value
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, TOPIC_CONFIG_KEYS


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A value of a property, under the name and from the source where it was found."""

    name: str
    value: str | None
    source: ConfigSource


class BrokerConfiguration:
    """The properties given at start (`--set`), over the defaults. Raises `InvalidConfigError` when made."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        for name, text in properties.items():
            key = BROKER_CONFIG_KEYS.get(name)
            if key is None:
                raise InvalidConfigError(f"Unknown broker property: {name}")
            key.parse(text)
        self._properties = dict(properties)

    def value(self, name: str) -> Value:
        """A property that has a value. Raises `KeyError` for one that does not exist."""
        text = self._properties.get(name, BROKER_CONFIG_KEYS[name].default)
        assert text is not None, f"{name} has no value"
        return BROKER_CONFIG_KEYS[name].parse(text)

    def integer(self, name: str) -> int:
        """A property of an integer type."""
        return int(self.value(name))

    def entries(self, name: str) -> list[ConfigEntry]:
        """The sources of a property that have a value, the one in force first."""
        found = []
        if name in self._properties:
            found.append(ConfigEntry(name, self._properties[name], ConfigSource.STATIC_BROKER))
        default = BROKER_CONFIG_KEYS[name].default
        if default is not None:
            found.append(ConfigEntry(name, default, ConfigSource.DEFAULT))
        return found

    def entry(self, name: str) -> ConfigEntry:
        """The value in force; null, from the default, for a property that nobody set."""
        return next(iter(self.entries(name)), ConfigEntry(name, None, ConfigSource.DEFAULT))

    def topic(self, overrides: Mapping[str, str]) -> "TopicConfiguration":
        """The configuration of a topic on this broker."""
        return TopicConfiguration(self, overrides)


class TopicConfiguration:
    """The properties of one topic, over those of the broker."""

    def __init__(self, broker: BrokerConfiguration, overrides: Mapping[str, str]) -> None:
        self.broker = broker
        self._overrides = overrides

    def entry(self, name: str) -> ConfigEntry:
        """The value in force, in the topic's own unit."""
        key = TOPIC_CONFIG_KEYS[name]
        if name in self._overrides:
            return ConfigEntry(name, self._overrides[name], ConfigSource.TOPIC)
        for synonym, unit in key.synonyms:
            for entry in self.broker.entries(synonym):
                if entry.source is not ConfigSource.DEFAULT:
                    return ConfigEntry(name, _in_units(entry.value, unit), entry.source)
        return ConfigEntry(name, key.default, ConfigSource.DEFAULT)

    def synonyms(self, name: str) -> list[ConfigEntry]:
        """Every source that has a value, the one in force first, broker properties in their own units.

        Of several broker properties only the strongest shows its default: Kafka lists a topic that overrides nothing
        as having no synonym of `retention.ms`, though the default of `log.retention.hours` is in force.
        """
        found = [ConfigEntry(name, self._overrides[name], ConfigSource.TOPIC)] if name in self._overrides else []
        entries = [entry for synonym, _ in TOPIC_CONFIG_KEYS[name].synonyms for entry in self.broker.entries(synonym)]
        strongest = next((synonym for synonym, _ in TOPIC_CONFIG_KEYS[name].synonyms), None)
        found += [entry for entry in entries if entry.source is not ConfigSource.DEFAULT]
        return found + [entry for entry in entries if entry.source is ConfigSource.DEFAULT and entry.name == strongest]

    def value(self, name: str) -> Value:
        """The typed value in force. Raises `KeyError` for a property that does not exist."""
        text = self.entry(name).value
        assert text is not None, f"{name} has no value"
        return TOPIC_CONFIG_KEYS[name].parse(text)

    def integer(self, name: str) -> int:
        """A property of an integer type."""
        return int(self.value(name))

    def entries(self) -> Iterator[ConfigEntry]:
        """Every property of a topic, names ascending."""
        return (self.entry(name) for name in TOPIC_CONFIG_KEYS)


def _in_units(text: str | None, unit: int) -> str | None:
    if text is None or unit == 1:
        return text
    number = int(text)
    return str(number * unit if number >= 0 else number)


def validate_topic_overrides(overrides: Mapping[str, str | None], broker: BrokerConfiguration) -> dict[str, str]:
    """A topic's own properties. Raises `InvalidConfigError`, with Kafka's message, for the first that is wrong.

    :param broker: where the properties come from that the topic does not set; some are judged together.
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
