"""Kafka's messages, built from plain values.

A step gives each value under every field name that any version of the message has for it. `build` takes the names that
the requested version has, and drops the others, as a client of that version would.
"""

import datetime as dt
import typing
import uuid
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType
from typing import Any, Final, Protocol

REQUEST_TIMEOUT_MS: Final = 5_000
"""Request timeout of produce and admin requests."""


class Names(Protocol):
    """The values that the symbols of a script have on one target."""

    @property
    def session_timeout_ms(self) -> int:
        """Session timeout and rebalance timeout of members."""
        ...

    @property
    def short_session_timeout_ms(self) -> int:
        """Session timeout of members whose session is to end within the script."""
        ...

    @property
    def transaction_timeout_ms(self) -> int:
        """Transaction timeout of producers with a transactional id."""
        ...

    def real(self, name: str) -> str:
        """Return the real name of a topic or group."""
        ...

    def topic_id(self, name: str) -> uuid.UUID:
        """Return the id of a topic by its name in the script; the zero id while unknown."""
        ...

    def nth_topic_id(self, n: int) -> uuid.UUID:
        """Return the nth topic id that the script has seen; for -1 an id that no topic has."""
        ...

    @property
    def fetch_session(self) -> tuple[int, int]:
        """Id and next epoch of the script's fetch session; 0 and 0 if there is none."""
        ...

    def producer_id(self, producer: int) -> int:
        """Return the nth producer id that was assigned to the script."""
        ...

    def member_id(self, member: int | str) -> str:
        """Return the nth member id that was assigned to the script; a text unchanged."""
        ...

    def broker(self, place: int) -> int:
        """Return the id of a broker by its place; the number itself if the target has fewer brokers."""
        ...


def build(message: type[Any], values: Mapping[str, Any]) -> Any:
    """Return a kio message. `values` are by field name, with mappings and sequences of them for nested messages.

    Names that this version lacks are dropped. None is the empty list in a version whose list cannot be null. Raises
    `TypeError` for a field that has neither value nor default.
    """
    types = _field_types(message)  # type: ignore[arg-type]  # mypy: a class is hashable, type[Any] is not
    arguments = {}
    for item in fields(message):
        if item.name in values:
            arguments[item.name] = _value(types[item.name], values[item.name])
        elif item.default is MISSING and item.default_factory is MISSING:
            raise TypeError(f"{message.__name__} v{message.__version__} needs {item.name}")
    return message(**arguments)


@cache
def _field_types(message: type[Any]) -> Mapping[str, Any]:
    return typing.get_type_hints(message)


def _value(kind: Any, value: Any) -> Any:
    nested = _nested_message(kind)
    if nested is None:
        return value
    if value is None:
        return None if NoneType in typing.get_args(kind) else ()
    if isinstance(value, Mapping):
        return build(nested, value)
    return tuple(build(nested, item) for item in value)


def _nested_message(kind: Any) -> type[Any] | None:
    """Return the message inside `M`, `tuple[M, ...]` or `tuple[M, ...] | None`; None for plain fields."""
    if isinstance(kind, type) and hasattr(kind, "__version__"):
        return kind
    return next((found for part in typing.get_args(kind) if (found := _nested_message(part))), None)


def milliseconds(value: int) -> dt.timedelta:
    """Return a duration as kio represents it."""
    return dt.timedelta(milliseconds=value)


def one_topic(step: Any, names: Names, partition: dict[str, Any], partitions: str = "partitions") -> dict[str, Any]:
    """Return a topic with one partition, under the names that the versions of an API have for them.

    :param partition: the other fields of the partition.
    :param partitions: name of the field with the partitions.
    """
    name = names.real(step.topic)
    topic = {"name": name, "topic": name, "topic_id": topic_id(step, names)}
    index = {"index": step.partition, "partition": step.partition, "partition_index": step.partition}
    return topic | {partitions: [index | partition]}


def topic_id(step: Any, names: Names) -> uuid.UUID:
    """Return the topic id in a step's request: the step's own `topic_id` if it has one, else the id of its topic."""
    other_id = getattr(step, "topic_id", None)
    return names.topic_id(step.topic) if other_id is None else names.nth_topic_id(other_id)
