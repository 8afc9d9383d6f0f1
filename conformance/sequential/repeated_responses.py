"""Comparison of the responses to a request that is sent several times, in each version and to each broker.

A response is compared field by field. The elements of a list are matched by their names or ids, since their order has
no meaning. A field that a version lacks is not compared, and neither are the fields that may vary, such as times, and
groups of other clients, which may change at any time. Of a field that may only rise, the values that one broker returns
are compared in the order of the responses.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from conformance.sequential.response import Symbols, first_field

_KEYS: Final = (
    *("name", "topic", "topic_name", "group_id", "resource_name", "key", "entity_type", "log_dir", "producer_id"),
    *("partition_index", "partition_id", "partition", "node_id", "broker_id", "replica_id", "api_key", "member_id"),
)
"""Fields that identify an element of a list."""
_ORDERED: Final = "replica_nodes"
"""The list whose order has a meaning: the first replica is the preferred leader."""
_VARYING: Final = frozenset({"throttle_time", "host", "port"})
"""Fields that are not compared in any response. Addresses depend on the listener, and `field_rules` judges them."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The response to one of the requests.

    :ivar broker: the place of the broker.
    """

    version: int
    broker: int
    response: Any

    @property
    def sent_to(self) -> str:
        """Version and broker, as text."""
        return f"v{self.version} of broker {self.broker}"


def differing(returned: Sequence[Returned], varying: Collection[str], symbols: Symbols) -> tuple[str, ...]:
    """Return the fields in which responses differ, each with the first two different values."""
    first: dict[str, tuple[Any, str]] = {}
    found: dict[str, str] = {}
    for each in returned:
        for path, value in _values(each.response, "", {*varying, *_VARYING}, symbols):
            known, sent_to = first.setdefault(path, (value, each.sent_to))
            if value != known:
                found.setdefault(path, f"{path} was {known!r} in {sent_to}, {value!r} in {each.sent_to}")
    return tuple(found.values())


def decreased(returned: Sequence[Returned], rising: Collection[str], symbols: Symbols) -> tuple[str, ...]:
    """Return the fields with these names whose value in a response is below that of an earlier one of this broker."""
    last: dict[tuple[int, str], tuple[Any, str]] = {}
    found: dict[str, str] = {}
    for each in returned:
        for path, value in _values(each.response, "", _VARYING, symbols):
            if path.rpartition(".")[2] not in rising:
                continue
            previous, sent_to = last.get((each.broker, path), (value, each.sent_to))
            if value < previous:
                found.setdefault(path, f"{path} was {previous} in {sent_to}, and then {value} in {each.sent_to}")
            last[each.broker, path] = value, each.sent_to
    return tuple(found.values())


def _values(value: Any, path: str, varying: Collection[str], symbols: Symbols) -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a message with their paths, at every depth, and the elements that each list has."""
    if is_dataclass(value):
        for item in fields(value):
            if item.name not in varying:
                inner = f"{path}.{item.name}" if path else item.name
                yield from _values(getattr(value, item.name), inner, varying, symbols)
    elif isinstance(value, tuple) and any(map(is_dataclass, value)):
        elements = _by_key([each for each in value if not _is_other_group(each, symbols)], symbols)
        yield path, tuple(sorted(elements))
        for key, element in elements.items():
            yield from _values(element, f"{path}[{key}]", varying, symbols)
    elif isinstance(value, tuple):
        yield path, value if path.endswith(_ORDERED) else tuple(sorted(value))
    else:
        yield path, value


def _is_other_group(element: Any, symbols: Symbols) -> bool:
    group = getattr(element, "group_id", None)
    return group is not None and symbols.script_name(group) is None


def _by_key(elements: Sequence[Any], symbols: Symbols) -> Mapping[str, Any]:
    """Return the elements by name or id; by their position, too, if several have the same one."""
    keys = [_key(element, symbols) for element in elements]
    counts = Counter(keys)
    positions = (key if counts[key] == 1 else f"{key} {position}" for position, key in enumerate(keys))
    return dict(zip(positions, elements, strict=True))


def _key(element: Any, symbols: Symbols) -> str:
    """Return the name of the script's topic if the element has only its id; otherwise the element's name or id."""
    name = symbols.name_of_topic(getattr(element, "topic_id", None))
    key = name if name is not None else first_field(element, _KEYS)
    return str((symbols.script_name(key) or key) if isinstance(key, str) else key)
