"""What is in force: a broker's own properties, and a topic's, each with the sources that it could come from.

A broker's property is, the strongest first: set for this broker while it runs, set for all brokers while they run,
given to it at its start, or the default (KIP-226). What is set while it runs comes with the metadata.

A topic's property is its own where it sets one, else the broker's, else the default. A value that came from the broker
keeps the name it has there, which is what DescribeConfigs calls a synonym.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reference_broker.core.configuration.key import ConfigSource, InvalidConfigError, Value, canonical
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, BROKER_SYNONYMS, TOPIC_CONFIG_KEYS


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
        defaults = {name: key.default for name, key in BROKER_CONFIG_KEYS.items() if key.default is not None}
        self._sources: dict[ConfigSource, Mapping[str, str]] = {
            ConfigSource.DYNAMIC_BROKER: {},
            ConfigSource.DYNAMIC_DEFAULT_BROKER: {},
            ConfigSource.STATIC_BROKER: dict(properties),
            ConfigSource.DEFAULT: defaults,
        }
        self._values: dict[str, Value] = {}

    def set_dynamic(self, own: Mapping[str, str], cluster_wide: Mapping[str, str]) -> None:
        """What holds from here on for this broker, and for all. A value that cannot be is passed over, as in Kafka."""
        self._sources[ConfigSource.DYNAMIC_BROKER] = _valid(own)
        self._sources[ConfigSource.DYNAMIC_DEFAULT_BROKER] = _valid(cluster_wide)
        self._values.clear()

    def value(self, name: str) -> Value:
        """A property that has a value. Raises `KeyError` for one that does not exist."""
        found = self._values.get(name)
        if found is None:
            text = next((source[name] for source in self._sources.values() if name in source), None)
            key = BROKER_CONFIG_KEYS[name]
            assert text is not None, f"{name} has no value"
            found = self._values[name] = key.parse(text)
        return found

    def integer(self, name: str) -> int:
        """A property of an integer type."""
        return int(self.value(name))

    def given(self, source: ConfigSource) -> Mapping[str, str]:
        """What one source gives, properties included that this broker does not heed."""
        return self._sources[source]

    def synonyms(self, name: str) -> list[ConfigEntry]:
        """Every source that gives this property or one that means the same, the one in force first.

        Kafka leaves out what comes before the first one of this very name: a `log.retention.ms` that nobody set has no
        synonym, though the default of `log.retention.hours` is in force.
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
        """The value in force; null, from the default, for a property that nobody set."""
        return next(iter(self.synonyms(name)), ConfigEntry(name, None, ConfigSource.DEFAULT))

    def strongest(self, names: Iterable[str]) -> ConfigEntry | None:
        """Who sets one of these, which mean the same, the strongest first; null where only defaults do."""
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
        """The configuration of a topic on this broker."""
        return TopicConfiguration(self, overrides)


class TopicConfiguration:
    """The properties of one topic, over those of the broker."""

    def __init__(self, broker: BrokerConfiguration, overrides: Mapping[str, str]) -> None:
        self.broker = broker
        self._overrides = overrides

    def entry(self, name: str) -> ConfigEntry:
        """The value in force, in the topic's own unit, and the source that Kafka names for it."""
        text = self._text(name)
        shown = None if text is None else canonical(TOPIC_CONFIG_KEYS[name].parse(text))
        source = next((entry.source for entry in self.synonyms(name)), ConfigSource.DEFAULT)
        return ConfigEntry(name, shown, source)

    def synonyms(self, name: str) -> list[ConfigEntry]:
        """Every source that has a value, the one in force first, broker properties in their own units."""
        key = TOPIC_CONFIG_KEYS[name]
        found = []
        if name in self._overrides:
            found.append(ConfigEntry(name, canonical(key.parse(self._overrides[name])), ConfigSource.TOPIC))
        return found + (self.broker.synonyms(key.synonyms[0][0]) if key.synonyms else [])

    def value(self, name: str) -> Value:
        """The typed value in force. Raises `KeyError` for a property that does not exist."""
        text = self._text(name)
        assert text is not None, f"{name} has no value"
        return TOPIC_CONFIG_KEYS[name].parse(text)

    def integer(self, name: str) -> int:
        """A property of an integer type."""
        return int(self.value(name))

    def entries(self) -> Iterator[ConfigEntry]:
        """Every property of a topic, names ascending."""
        return (self.entry(name) for name in TOPIC_CONFIG_KEYS)

    def _text(self, name: str) -> str | None:
        if name in self._overrides:
            return self._overrides[name]
        key = TOPIC_CONFIG_KEYS[name]
        units = dict(key.synonyms)
        entry = self.broker.strongest(units)
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
