"""Merging of the requests of several steps into one, as clients do, and splitting of its response by step.

Two messages can be merged if all their plain fields are equal. The merged message has the elements of both in its
lists. Two elements that have lists themselves, such as the topic of two partitions, are merged in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from conformance.sequential.layout import topic_id
from conformance.sequential.response import INDEXES, TOPIC_NAMES, Response, Symbols, error_of, first_field, malformed
from conformance.sequential.responses import normalise
from conformance.sequential.steps import Step

LISTS: Final = (
    *("groups", "topics", "results", "responses", "partitions", "partition_responses"),
    *("replica_election_results", "partition_result"),
)
"""The names of the lists in responses, at any depth, whose elements are the requested groups, topics or partitions."""


@dataclass(slots=True)
class MergedRequest:
    """One request that replaces the separate requests of several steps.

    :ivar node_id: id of the broker that receives it; None for the first broker.
    """

    node_id: int | None
    message: Any
    steps: list[Step]


@dataclass(slots=True)
class MergedRequests:
    """The fewest requests that hold all messages that were added."""

    requests: list[MergedRequest] = field(default_factory=list)

    def add(self, step: Step, node_id: int | None, message: Any) -> None:
        """Merge a message into the first request to this broker that can hold it."""
        for request in self.requests:
            if request.node_id == node_id and _can_merge(request.message, message):
                request.message = _merge(request.message, message)
                request.steps.append(step)
                return
        self.requests.append(MergedRequest(node_id, message, [step]))


def _can_merge(first: Any, second: Any) -> bool:
    """Whether two messages, or two elements of a list, are equal except for the elements of their lists."""
    pairs = [(getattr(first, item.name), getattr(second, item.name)) for item in fields(first)]
    return all(one == other or (isinstance(one, tuple) and isinstance(other, tuple)) for one, other in pairs)


def _merge(first: Any, second: Any) -> Any:
    lists = [item.name for item in fields(first) if getattr(first, item.name) != getattr(second, item.name)]
    return replace(first, **{name: _union(getattr(first, name), getattr(second, name)) for name in lists})


def _union(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the elements of both lists. Elements that have lists themselves are merged where possible."""
    elements = [*first]
    for element in second:
        for place, known in enumerate(elements):
            if _has_lists(element) and _can_merge(known, element):
                elements[place] = _merge(known, element)
                break
        else:
            elements.append(element)
    return tuple(elements)


def _has_lists(element: Any) -> bool:
    return is_dataclass(element) and any(isinstance(getattr(element, item.name), tuple) for item in fields(element))


def responses_to_each(steps: Sequence[Step], response: Any, symbols: Symbols) -> tuple[Response, ...]:
    """Return one response for each step, as if its request had been sent alone.

    Each step must concern another partition, topic or group.
    """
    count = _count_leaves(response)
    if count != len(steps):
        error = error_of(getattr(response, "error_code", ErrorCode.none))
        named = "" if error == "NONE" else f", and has the error {error}"
        text = f"the response is about {count} partitions, topics or groups{named}; {len(steps)} were requested"
        return (malformed(ValueError(text)),) * len(steps)
    return tuple(normalise(step, _part_for(step, response, symbols), symbols) for step in steps)


def _count_leaves(part: Any) -> int:
    """Return the number of innermost elements, such as partitions, in the lists of a response (`LISTS`)."""
    elements = [element for name in _lists(part) for element in getattr(part, name)]
    return sum(_count_leaves(element) or 1 for element in elements)


def _part_for(step: Any, part: Any, symbols: Symbols) -> Any:
    """Return a response, or an element of it, without what concerns other steps."""
    kept = {
        name: tuple(
            _part_for(step, element, symbols) for element in getattr(part, name) if _concerns(element, step, symbols)
        )
        for name in _lists(part)
    }
    return replace(part, **kept)


def _lists(part: Any) -> list[str]:
    return [name for name in LISTS if isinstance(getattr(part, name, None), tuple)]


def _concerns(element: Any, step: Any, symbols: Symbols) -> bool:
    """Whether an element has the group, the topic and the partition of a step, as far as it names them."""
    if hasattr(element, "group_id"):
        return bool(element.group_id == symbols.real(step.group))
    index = first_field(element, INDEXES)
    if index is not None:
        return bool(index == step.partition)
    name = first_field(element, (*TOPIC_NAMES, "resource_name"))
    if name is not None:
        return bool(name == symbols.real(step.topic))
    return bool(element.topic_id == topic_id(step, symbols))
