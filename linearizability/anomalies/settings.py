"""Kafka properties in force on a topic, from `run.json` and the faults of kind `configuration`.

A topic's own setting overrides that of the cluster, which may have a different name (`log.retention.ms`). The setting
of the cluster overrides Kafka's default. A change during the run is a row of `faults`. Its target is a topic
(`topic:NAME`, `topic=NAME`, or the `NAME` of a topic of `run.json`); any other target means the cluster, unless it
begins with `topic`. Its argument is a JSON object, or `property=value`, several of them separated by commas. The checks
consider *every* value that was in force at some time, and use the one that promises least, because the effect of an
earlier value cannot be undone.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from linearizability.anomalies.faults import Fault

ALIASES: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "retention.ms": (
        ("retention.ms", 1),
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "retention.bytes": (("retention.bytes", 1), ("log.retention.bytes", 1)),
    "cleanup.policy": (("cleanup.policy", 1), ("log.cleanup.policy", 1)),
    "flush.messages": (("flush.messages", 1), ("log.flush.interval.messages", 1)),
}
"""The spellings of a property on a broker, most specific first, each with the factor to the topic's unit."""

RETENTION_MS_DEFAULT: Final = 7 * 24 * 3_600_000
_NAME: Final = re.compile(r"(?<![\w.\-])([\w.\-]+)\s*=")
_SEPARATOR: Final = re.compile(r"[,;\s]")
_NOT_SPACE: Final = re.compile(r"\S")
_WHOLE_NUMBER: Final = re.compile(r"-?\d{1,19}")
"""Numbers of Kafka's largest type, long. `int` rejects texts of thousands of digits."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of a property and when it came into force; None means from the start."""

    value: str
    from_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The properties of a run. Faults of other kinds than `configuration` are ignored."""

    topics: Mapping[str, Mapping[str, str]]
    cluster: Mapping[str, str]
    faults: tuple[Fault, ...]

    def in_force(self, topic: str, name: str) -> list[Setting]:
        """Return every value of a property that was in force on a topic; empty if only Kafka's default was."""
        own = self.topics.get(topic, {}).get(name)
        changes = [Setting(value, at) for fault, at in self._topic_changes(topic) for value in _values(fault, name)]
        if own is not None:
            return [Setting(own), *changes]
        inherited = _first_alias(self.cluster, name)
        cluster = [Setting(value, at) for fault, at in self._cluster_changes() for value in _values(fault, name)]
        return [*([Setting(inherited)] if inherited is not None else []), *cluster, *changes]

    def numbers(self, topic: str, name: str) -> list[int]:
        """Return the values of `in_force` that are whole numbers."""
        return [int(setting.value) for setting in self.in_force(topic, name) if _WHOLE_NUMBER.fullmatch(setting.value)]

    def _topic_changes(self, topic: str) -> Iterator[tuple[Fault, int]]:
        own = {topic, f"topic:{topic}", f"topic={topic}"}
        return ((fault, fault.inject_ns) for fault in self.faults if fault.is_configuration and fault.target in own)

    def _cluster_changes(self) -> Iterator[tuple[Fault, int]]:
        return (
            (fault, fault.inject_ns)
            for fault in self.faults
            if fault.is_configuration
            and fault.target not in self.topics
            and not (fault.target or "").startswith("topic")
        )


def _first_alias(properties: Mapping[str, str], name: str) -> str | None:
    for spelling, factor in ALIASES.get(name, ((name, 1),)):
        value = properties.get(spelling)
        if value is not None:
            return _scaled(value, factor)
    return None


def _scaled(value: str, factor: int) -> str:
    return str(int(value) * factor) if factor != 1 and _WHOLE_NUMBER.fullmatch(value) else value


def _values(fault: Fault, name: str) -> Iterator[str]:
    """Yield the value, if any, that a configuration fault sets for a property."""
    changed = _parse_argument(fault.argument or "")
    for spelling, factor in ALIASES.get(name, ((name, 1),)):
        if spelling in changed:
            yield _scaled(changed[spelling], factor)


def _parse_argument(argument: str) -> dict[str, str]:
    """Return the value of each property that the argument of a configuration fault sets."""
    try:
        document = json.loads(argument)
    except (ValueError, RecursionError):
        return dict(_parse_pairs(argument))
    if not isinstance(document, dict):
        return {}
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in document.items()}


def _parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a text such as `a=1, b=2`, in time that is linear in its length.

    A value ends before a separator and the next `name=`, so it may contain separators and `=`.
    """
    name = ""
    begin = 0
    for found in _NAME.finditer(text):
        if name:
            is_separated = _SEPARATOR.fullmatch(text, found.start() - 1, found.start())
            if not (is_separated and _NOT_SPACE.search(text, begin, found.start())):
                continue
            value = text[begin : found.start()].rstrip()
            yield name, (value[:-1] if value.endswith((",", ";")) else value).strip()
        name, begin = found[1], found.end()
    if name:
        yield name, text[begin:].strip()
