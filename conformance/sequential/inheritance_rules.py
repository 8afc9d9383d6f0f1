"""Rules for the settings that a topic inherits from its broker (`ConfigHelper`, `ServerTopicConfigSynonyms`; KIP-226).

A DescribeConfigs response that has a topic and the broker that responds shows the values of the broker's properties
twice. Both descriptions must be the same. The rules hold in Apache Kafka 2.8 to 4.3, whatever the broker's properties
are. A property that the response lacks is not judged.

These properties are left out, because their values do not follow from one property, or their defaults differ between
versions: `message.format.version`, `message.timestamp.*.max.ms`, `message.downconversion.enable`,
`compression.*.level`, and the properties of tiered storage.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

TOPIC_CONFIG: Final = 1
"""`ConfigSource` of a setting of the topic itself."""
_DEFAULT_CONFIG: Final = 5
_SOURCES: Final = {
    1: "TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_LONG_MAX: Final = str(2**63 - 1)

_Unit = int
"""The factor from the unit of a broker's property to that of the topic's property."""
_SYNONYMS: Final[Mapping[str, Mapping[str, _Unit]]] = {
    "cleanup.policy": {"log.cleanup.policy": 1},
    "compression.type": {"compression.type": 1},
    "delete.retention.ms": {"log.cleaner.delete.retention.ms": 1},
    "file.delete.delay.ms": {"log.segment.delete.delay.ms": 1},
    "flush.messages": {"log.flush.interval.messages": 1},
    "flush.ms": {"log.flush.interval.ms": 1, "log.flush.scheduler.interval.ms": 1},
    "index.interval.bytes": {"log.index.interval.bytes": 1},
    "max.compaction.lag.ms": {"log.cleaner.max.compaction.lag.ms": 1},
    "max.message.bytes": {"message.max.bytes": 1},
    "message.timestamp.type": {"log.message.timestamp.type": 1},
    "min.cleanable.dirty.ratio": {"log.cleaner.min.cleanable.ratio": 1},
    "min.compaction.lag.ms": {"log.cleaner.min.compaction.lag.ms": 1},
    "min.insync.replicas": {"min.insync.replicas": 1},
    "preallocate": {"log.preallocate": 1},
    "retention.bytes": {"log.retention.bytes": 1},
    "retention.ms": {"log.retention.ms": 1, "log.retention.minutes": _MINUTE_MS, "log.retention.hours": _HOUR_MS},
    "segment.bytes": {"log.segment.bytes": 1},
    "segment.index.bytes": {"log.index.size.max.bytes": 1},
    "segment.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR_MS},
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
    "unclean.leader.election.enable": {"unclean.leader.election.enable": 1},
}
"""The broker's properties from which each topic property is inherited. The first one that has a value decides."""
_TYPE_NAMES: Final = {1: "BOOLEAN", 2: "STRING", 3: "INT", 4: "SHORT", 5: "LONG", 6: "DOUBLE", 7: "LIST"}
"""Names of the types by their numbers in DescribeConfigs (`ConfigType`)."""
_TYPES: Final[Mapping[str, str]] = {
    "cleanup.policy": "LIST",
    "compression.type": "STRING",
    "delete.retention.ms": "LONG",
    "file.delete.delay.ms": "LONG",
    "flush.messages": "LONG",
    "flush.ms": "LONG",
    "index.interval.bytes": "INT",
    "max.compaction.lag.ms": "LONG",
    "max.message.bytes": "INT",
    "message.timestamp.type": "STRING",
    "min.cleanable.dirty.ratio": "DOUBLE",
    "min.compaction.lag.ms": "LONG",
    "min.insync.replicas": "INT",
    "preallocate": "BOOLEAN",
    "retention.bytes": "LONG",
    "retention.ms": "LONG",
    "segment.bytes": "INT",
    "segment.index.bytes": "INT",
    "segment.jitter.ms": "LONG",
    "segment.ms": "LONG",
    "unclean.leader.election.enable": "BOOLEAN",
}
TOPIC_PROPERTIES: Final = tuple(_SYNONYMS)
WITH_SEVERAL_SYNONYMS: Final = frozenset(name for name, synonyms in _SYNONYMS.items() if len(synonyms) > 1)
"""Properties whose source differs in Apache Kafka (4.3.1) if the value is that of the second or third synonym.

DescribeConfigs then returns DEFAULT_CONFIG, and CreateTopics STATIC_BROKER_CONFIG.
"""
BROKER_PROPERTIES: Final = tuple(sorted({name for synonyms in _SYNONYMS.values() for name in synonyms}))

_BROKER_DEFAULTS: Final[Mapping[str, str]] = {
    "compression.type": "producer",
    "log.cleaner.delete.retention.ms": "86400000",
    "log.cleaner.max.compaction.lag.ms": _LONG_MAX,
    "log.cleaner.min.cleanable.ratio": "0.5",
    "log.cleaner.min.compaction.lag.ms": "0",
    "log.cleanup.policy": "delete",
    "log.flush.interval.messages": _LONG_MAX,
    "log.flush.scheduler.interval.ms": _LONG_MAX,
    "log.index.interval.bytes": "4096",
    "log.index.size.max.bytes": "10485760",
    "log.message.timestamp.type": "CreateTime",
    "log.preallocate": "false",
    "log.retention.bytes": "-1",
    "log.retention.hours": "168",
    "log.roll.hours": "168",
    "log.roll.jitter.hours": "0",
    "log.segment.bytes": "1073741824",
    "log.segment.delete.delay.ms": "60000",
    "message.max.bytes": "1048588",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
}
"""The defaults of Apache Kafka's documentation, which are the same in all versions from 2.8 to 4.3.

Left out are `log.retention.ms` and other properties whose default is null: the next one in `_SYNONYMS` decides."""


def not_inherited(topic: Sequence[Any], broker: Sequence[Any]) -> tuple[str, ...]:
    """Return a text for each setting of a topic whose value, source or synonyms are not the broker's.

    :param topic: the configs of a topic in a response with synonyms.
    :param broker: the configs of the broker that sent the response.
    """
    described = {str(config.name): config for config in broker}
    return tuple(text for config in topic for text in _not_inherited(config, described))


def _not_inherited(config: Any, broker: Mapping[str, Any]) -> Iterator[str]:
    units = _SYNONYMS.get(config.name, {})
    if not units or not units.keys() <= broker.keys():
        return
    first = broker[next(iter(units))]
    own = [synonym for synonym in config.synonyms if synonym.source == TOPIC_CONFIG]
    synonyms, expected = _listed(config.synonyms[len(own) :]), _listed(first.synonyms)
    if synonyms != expected:
        yield f"synonyms of {config.name} {synonyms}, but those of {first.name} are {expected}"
    if config.config_source == TOPIC_CONFIG:
        return
    if config.config_source != first.config_source:
        yield f"source of {config.name} {source_name(config)}, but that of {first.name} is {source_name(first)}"
    inherited = _inherited(units, broker)
    if inherited is not None and not is_same_value(config.value, inherited):
        listed = ", ".join(f"{name} is {broker[name].value}" for name in units)
        yield f"{config.name} {config.value}, but {listed}"


def _listed(synonyms: Sequence[Any]) -> str:
    return "[" + ", ".join(f"{each.name} {each.value} {source_name(each)}" for each in synonyms) + "]"


def source_name(config: Any) -> str:
    """Return the name of the source of a setting or synonym."""
    source = int(config.config_source if hasattr(config, "config_source") else config.source)
    return _SOURCES.get(source, str(source))


def _inherited(units: Mapping[str, _Unit], broker: Mapping[str, Any]) -> str | None:
    """Return the value of the first of these properties that has one, in the topic's unit; None if none has a value."""
    name = next((name for name in units if broker[name].value is not None), None)
    if name is None:
        return None
    text = str(broker[name].value)
    number = _number(text)
    return text if units[name] == 1 or number is None else str(int(number) * units[name])


def is_same_value(text: str | None, other: str | None) -> bool:
    """Whether two texts are the same value, however they are written.

    Every negative time and size is unlimited: Kafka returns -1 for `log.retention.ms=-5`.
    """
    return text == other or (text is not None and other is not None and _parsed(text) == _parsed(other))


def _parsed(text: str) -> float | tuple[str, ...]:
    number = _number(text)
    if number is not None:
        return max(number, -1)
    parts = tuple(part.strip() for part in text.split(","))
    return tuple(part.lower() if part.lower() in {"true", "false"} else part for part in parts)


def _number(text: str) -> float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def other_defaults(topic: Sequence[Any], broker: Sequence[Any]) -> tuple[str, ...]:
    """Return the settings with the source DEFAULT_CONFIG that do not have the default of Apache Kafka's documentation.

    A setting that several properties of the broker determine has this source whenever the first of these is not set.
    Therefore its default is judged only if the source of all these properties is DEFAULT_CONFIG.
    """
    defaults = [config for config in broker if config.config_source == _DEFAULT_CONFIG]
    names = {str(config.name) for config in defaults}
    found = [(config, _BROKER_DEFAULTS[config.name]) for config in defaults if config.name in _BROKER_DEFAULTS]
    for config in topic:
        units = _SYNONYMS.get(config.name, {})
        if units and config.config_source == _DEFAULT_CONFIG and units.keys() <= names:
            found.append((config, _topic_default(units)))
    return tuple(
        f"{config.name} {config.value} {source_name(config)}, but the default is {default}"
        for config, default in found
        if not is_same_value(config.value, default)
    )


def other_types(topic: Sequence[Any]) -> tuple[str, ...]:
    """Return the settings of a topic whose type is not that of Apache Kafka's `LogConfig` (KIP-569).

    Versions before 3 have no types.
    """
    typed = ((config, getattr(config, "config_type", None)) for config in topic)
    return tuple(
        f"{config.name} of type {found}, not {_TYPES[config.name]}"
        for config, number in typed
        if config.name in _TYPES and number is not None
        if (found := _TYPE_NAMES.get(int(number), str(number))) != _TYPES[config.name]
    )


def _topic_default(units: Mapping[str, _Unit]) -> str:
    name = next(name for name in units if name in _BROKER_DEFAULTS)
    return _BROKER_DEFAULTS[name] if units[name] == 1 else str(int(_BROKER_DEFAULTS[name]) * units[name])
