"""Responses to raw requests, in a form that is the same for every version of an API: errors, names, invalid fields."""

import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final

from kio.schema.errors import ErrorCode

from conformance.sequential.field_rules import invalid_fields
from conformance.sequential.response import INVALID_FIELDS, Response, Symbols, error_of
from conformance.sequential.steps import RawRequest

_NAME_FIELDS: Final = frozenset(
    {
        "name",
        "topic",
        "topic_name",
        "topic_id",
        "resource_name",
        "group_id",
        "transactional_id",
        "member_id",
        "key",
        "user",
        "entity_name",
    }
)
"""Fields of the elements of a response that name what was requested."""


def raw_response(step: RawRequest, response: Any, symbols: Symbols) -> Response:
    """Return the errors, the requested names that are present, and whether there are elements at all.

    The last two are absent if the version has no fields for them. Invalid fields are listed if there are any. If the
    elements with errors have a field for a message, `explained` is whether each has a message.
    """
    errors = [error_of(value) for _, value in _leaves(response) if isinstance(value, ErrorCode)]
    values: dict[str, Any] = {"errors": tuple(sorted({*errors} - {"NONE"} if step.distinct else errors))}
    if _has_names(type(response)):  # type: ignore[arg-type]  # mypy: a class is hashable, type[Any] is not
        found = {*_texts(response), *map(symbols.real, _named_by_id(response, symbols))}
        values["names"] = tuple(sorted({name for name in _requested(step.fields) if symbols.real(name) in found}))
    if invalid := invalid_fields(step.fields, response, symbols):
        values[INVALID_FIELDS] = invalid
    if explanations := list(_explanations(response)):
        values["explained"] = all(explanations)
    lists = [value for item in fields(response) if isinstance(value := getattr(response, item.name), tuple)]
    return values | ({"has_elements": any(lists)} if lists else {})


def _elements(value: Any) -> Iterator[Any]:
    """Yield a message and its elements, at every depth."""
    if isinstance(value, tuple):
        for inner in value:
            yield from _elements(inner)
    elif is_dataclass(value):
        yield value
        for item in fields(value):
            yield from _elements(getattr(value, item.name))


def _explanations(response: Any) -> Iterator[str | None]:
    """Yield the error messages of the elements that have an error."""
    for element in _elements(response):
        if getattr(element, "error_code", ErrorCode.none) != ErrorCode.none and hasattr(element, "error_message"):
            yield element.error_message


def _texts(response: Any) -> Iterator[str]:
    return (value for _, value in _leaves(response) if isinstance(value, str))


def _named_by_id(response: Any, symbols: Symbols) -> Iterator[str]:
    """Yield the names of the script's topics to which elements refer only by id."""
    for element in _elements(response):
        has_name = getattr(element, "name", None) or getattr(element, "topic", None)
        if not has_name and (name := symbols.name_of_topic(getattr(element, "topic_id", None))):
            yield name


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a message with the names of their fields, at every depth."""
    if is_dataclass(value):
        for item in fields(value):
            yield from _leaves(getattr(value, item.name), item.name)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, value


def _requested(value: Any) -> Iterator[str]:
    """Yield the texts of a request, at every depth."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _requested(inner)


@cache
def _has_names(message: type[Any], *, is_element: bool = False) -> bool:
    """Whether the elements of a message, at any depth, have names."""
    hints = typing.get_type_hints(message)
    if is_element and not _NAME_FIELDS.isdisjoint(hints):
        return True
    nested = (part for kind in hints.values() for part in _parts(kind) if is_dataclass(part))
    return any(_has_names(typing.cast("type[Any]", part), is_element=True) for part in nested)  # type: ignore[arg-type]


def _parts(kind: Any) -> Iterator[Any]:
    inner = typing.get_args(kind)
    if not inner:
        yield kind
    for part in inner:
        yield from _parts(part)
