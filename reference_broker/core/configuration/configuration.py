"""Effective configuration of a broker and its topics, with the source of each value.

Follows: org.apache.kafka.metadata.KafkaConfigSchema (KIP-226).

Sources of a broker's property in order of precedence: dynamic for this broker, dynamic for all brokers, static (given
at startup), default. Dynamic values are part of the cluster's metadata.

The value of a topic's property is the topic's own if it is set. Otherwise it is the value of the corresponding broker
property if that is set, and otherwise the default of the topic's property. DescribeConfigs calls the broker's property
a synonym of the topic's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reference_broker.core.configuration.key import ConfigSource, InvalidConfigError, Value, canonical
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, BROKER_SYNONYMS, TOPIC_CONFIG_KEYS


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """Value of a property, with its name and source."""

    name: str
    value: str | None
    source: ConfigSource


class BrokerConfiguration:
    """Static properties (`--set`), dynamic properties, and defaults.

    The constructor raises `InvalidConfigError` for an unknown property or invalid value.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        for name, text in properties.items():
            key = BROKER_CONFIG_KEYS.get(name)
            if key is None:
                raise InvalidConfigError(f"Unknown broker property: {name}")
            key.parse(text)
        defaults = {name: key.default for name, key in BROKER_CONFIG_KEYS.items() if key.default is not None}
        self._sources: dict[ConfigSource, Mapping[str, str]] = {
            ConfigSource.DYNAMIC_BROKER: {},
            ConfigSource.DYNAMIC_DEFAULT_BROKER: {},
            ConfigSource.STATIC_BROKER: dict(properties),
            ConfigSource.DEFAULT: defaults,
        }
        self._values: dict[str, Value] = {}

    def set_dynamic(self, own: Mapping[str, str], cluster_wide: Mapping[str, str]) -> None:
        """Replace the dynamic properties of this broker and of all brokers. Invalid values are ignored, as in Kafka."""
        self._sources[ConfigSource.DYNAMIC_BROKER] = _valid(own)
        self._sources[ConfigSource.DYNAMIC_DEFAULT_BROKER] = _valid(cluster_wide)
        self._values.clear()

    def value(self, name: str) -> Value:
        """Return the effective value of a property. Raises `KeyError` if there is no such property."""
        found = self._values.get(name)
        if found is None:
            text = next((source[name] for source in self._sources.values() if name in source), None)
            key = BROKER_CONFIG_KEYS[name]
            assert text is not None, f"{name} has no value"
            found = self._values[name] = key.parse(text)
        return found

    def integer(self, name: str) -> int:
        """Return the effective value of an integer property."""
        return int(self.value(name))

    def given(self, source: ConfigSource) -> Mapping[str, str]:
        """Return the properties of one source, including those that this broker does not use."""
        return self._sources[source]

    def synonyms(self, name: str) -> list[ConfigEntry]:
        """Return the values of this property and of its synonyms in all sources, in order of precedence.

        As in Kafka, the list begins with a value of the property itself. So it is empty for `log.retention.ms` if this
        property is not set, although the default of `log.retention.hours` applies.
        """
        found = [
            ConfigEntry(synonym, given[synonym], source)
            for source, given in self._sources.items()
            for synonym in BROKER_SYNONYMS.get(name, (name,))
            if synonym in given
        ]
        first = next((index for index, entry in enumerate(found) if entry.name == name), len(found))
        return found[first:]

    def entry(self, name: str) -> ConfigEntry:
        """Return the effective value; null with source DEFAULT if the property has neither a value nor a default."""
        return next(iter(self.synonyms(name)), ConfigEntry(name, None, ConfigSource.DEFAULT))

    def explicit_entry(self, names: Iterable[str]) -> ConfigEntry | None:
        """Return the first of these synonyms that is set, by precedence of sources; null if all have their defaults."""
        names = list(names)
        return next(
            (
                ConfigEntry(name, given[name], source)
                for source, given in self._sources.items()
                if source is not ConfigSource.DEFAULT
                for name in names
                if name in given
            ),
            None,
        )

    def topic(self, overrides: Mapping[str, str]) -> "TopicConfiguration":
        """Return the configuration of a topic on this broker."""
        return TopicConfiguration(self, overrides)


class TopicConfiguration:
    """Properties of a topic, with those of the broker as defaults."""

    def __init__(self, broker: BrokerConfiguration, overrides: Mapping[str, str]) -> None:
        self.broker = broker
        self._overrides = overrides

    def entry(self, name: str) -> ConfigEntry:
        """Return the effective value in the unit of the topic's property.

        The source is that of the first entry of `synonyms`, as in Kafka; DEFAULT if there are no entries.
        """
        text = self._text(name)
        shown = None if text is None else canonical(TOPIC_CONFIG_KEYS[name].parse(text))
        source = next((entry.source for entry in self.synonyms(name)), ConfigSource.DEFAULT)
        return ConfigEntry(name, shown, source)

    def synonyms(self, name: str) -> list[ConfigEntry]:
        """Return the topic's value and those of the broker, in order of precedence. The broker's keep their units."""
        key = TOPIC_CONFIG_KEYS[name]
        found = []
        if name in self._overrides:
            found.append(ConfigEntry(name, canonical(key.parse(self._overrides[name])), ConfigSource.TOPIC))
        return found + (self.broker.synonyms(key.synonyms[0][0]) if key.synonyms else [])

    def value(self, name: str) -> Value:
        """Return the effective value. Raises `KeyError` if there is no such property."""
        text = self._text(name)
        assert text is not None, f"{name} has no value"
        return TOPIC_CONFIG_KEYS[name].parse(text)

    def integer(self, name: str) -> int:
        """Return the effective value of an integer property."""
        return int(self.value(name))

    def entries(self) -> Iterator[ConfigEntry]:
        """Yield every property, in order of names."""
        return (self.entry(name) for name in TOPIC_CONFIG_KEYS)

    def _text(self, name: str) -> str | None:
        if name in self._overrides:
            return self._overrides[name]
        key = TOPIC_CONFIG_KEYS[name]
        units = dict(key.synonyms)
        entry = self.broker.explicit_entry(units)
        return key.default if entry is None else _in_units(entry.value, units[entry.name])


def _in_units(text: str | None, unit: int) -> str | None:
    if text is None or unit == 1:
        return text
    number = int(text)
    return str(number * unit if number >= 0 else number)


def _valid(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in properties.items() if _is_valid(name, text)}


def _is_valid(name: str, text: str) -> bool:
    try:
        if name in BROKER_CONFIG_KEYS:
            BROKER_CONFIG_KEYS[name].parse(text)
    except InvalidConfigError:
        return False
    return True
