"""Requests of one API for several partitions, merged into one, and the part of the response for each of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from conformance.sequential.response import INDEXES, Response, Symbols, first_field, malformed
from conformance.sequential.responses import normalise
from conformance.sequential.steps import Fetch, ListOffsets, Produce

_TOPICS: Final = ("topic_data", "responses", "topics")
_PARTITIONS: Final = ("partition_data", "partition_responses", "partitions")
"""The names that requests and responses have for their topics, and for the partitions of a topic."""


def merged(messages: Sequence[Any]) -> Any:
    """Return the first message with the partitions of all messages."""
    name = _field(messages[0], _TOPICS)
    topics: dict[Any, tuple[Any, ...]] = {}
    for topic in (topic for message in messages for topic in getattr(message, name)):
        partitions = _field(topic, _PARTITIONS)
        key = replace(topic, **{partitions: ()})
        topics[key] = (*topics.get(key, ()), *getattr(topic, partitions))
    together = (replace(topic, **{_field(topic, _PARTITIONS): parts}) for topic, parts in topics.items())
    return replace(messages[0], **{name: tuple(together)})


def responses_to_each(
    steps: Sequence[Produce | Fetch | ListOffsets], response: Any, symbols: Symbols
) -> tuple[Response, ...]:
    """Return for each step the part of the response for its partition, as if it were the response to this step alone.

    The steps are about partitions of one topic, each about another one.
    """
    name = _field(response, _TOPICS)
    found = sum(len(getattr(topic, _field(topic, _PARTITIONS))) for topic in getattr(response, name))
    if found != len(steps):
        text = f"the response has {found} partitions; {len(steps)} were requested"
        return (malformed(ValueError(text)),) * len(steps)
    return tuple(normalise(step, _only(step.partition, response, name), symbols) for step in steps)


def _only(index: int, response: Any, name: str) -> Any:
    """Return the response with one partition."""
    topics = []
    for topic in getattr(response, name):
        partitions = _field(topic, _PARTITIONS)
        kept = tuple(part for part in getattr(topic, partitions) if first_field(part, INDEXES) == index)
        if kept:
            topics.append(replace(topic, **{partitions: kept}))
    return replace(response, **{name: tuple(topics)})


def _field(message: Any, names: Sequence[str]) -> str:
    return next(name for name in names if hasattr(message, name))
