"""Plain values as JSON and back: dataclasses, tuples, members of enums, numbers, strings and None.

A dataclass is an object with the name of its class as `type` and those fields that differ from their defaults; a member
of an enum is its name. Reading follows the type hints of the fields and accepts nothing else.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

Json: TypeAlias = Any
TYPE: Final = "type"
_PRINTED_MAX: Final = 60


class NotAValueError(ValueError):
    """JSON that is not a value of the wanted type. The message is one line."""


def to_json(value: object) -> Json:
    """Return the JSON form of a value."""
    if is_dataclass(value) and not isinstance(value, type):
        given = ((field.name, getattr(value, field.name)) for field in fields(value) if field.init)
        defaults = {field.name: field.default for field in fields(value)}
        return {TYPE: type(value).__name__} | {name: to_json(part) for name, part in given if part != defaults[name]}
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return value.name if isinstance(value, Enum) else value


def from_json(wanted: Any, given: Json, at: str = "trial") -> Any:
    """Return the value that JSON represents.

    :param wanted: type hint of the value.
    :param at: path of the value in its document, for messages.
    :raises NotAValueError: the JSON is not a value of that type.
    """
    origin = get_origin(wanted)
    if origin in {Union, UnionType}:
        return _alternative(get_args(wanted), given, at)
    if origin is tuple:
        return _tuple(get_args(wanted), given, at)
    if is_dataclass(wanted):
        return _dataclass((wanted,), given, at)
    if isinstance(wanted, type) and issubclass(wanted, Enum) and isinstance(given, str) and given in wanted.__members__:
        return wanted[given]
    if type(given) is wanted:
        return given
    raise _unexpected(given, at, _name(wanted))


def _alternative(types: tuple[Any, ...], given: Json, at: str) -> Any:
    """Return a value of one of several types.

    If none fits, the error names all types, except in two cases. If `given` is an object and some types are
    dataclasses, the error names the wrong `type` or the field that does not fit. If `given` is an array and exactly one
    type is an array, the error names the wrong length or the element that does not fit.
    """
    dataclasses = tuple(filter(is_dataclass, types))
    if dataclasses and isinstance(given, Mapping):
        return _dataclass(dataclasses, given, at)
    tuples = [each for each in types if get_origin(each) is tuple]
    if len(tuples) == 1 and isinstance(given, list):
        return from_json(tuples[0], given, at)
    for each in types:
        with suppress(NotAValueError):
            return from_json(each, given, at)
    raise _unexpected(given, at, " or ".join(map(_name, types)))


def _name(wanted: Any) -> str:
    if wanted is NoneType:
        return "null"
    return "array" if get_origin(wanted) is tuple else getattr(wanted, "__name__", str(wanted))


def _tuple(types: tuple[Any, ...], given: Json, at: str) -> tuple[Any, ...]:
    if not isinstance(given, list):
        raise _unexpected(given, at, "array")
    if types[1:] == (...,):
        types = types[:1] * len(given)
    if len(types) != len(given):
        raise NotAValueError(f"{at}: {len(given)} elements, where {len(types)} are expected")
    return tuple(
        from_json(wanted, part, f"{at}[{index}]") for index, (wanted, part) in enumerate(zip(types, given, strict=True))
    )


def _dataclass(types: tuple[Any, ...], given: Json, at: str) -> Any:
    named = {each.__name__: each for each in types}
    if not isinstance(given, Mapping):
        raise _unexpected(given, at, " or ".join(named))
    wanted = named.get(str(given.get(TYPE)))
    if wanted is None:
        raise NotAValueError(f"{at}: type {printed(given.get(TYPE))} is not one of {', '.join(named)}")
    hints = _hints(wanted)
    values: dict[str, Any] = {}
    for name, part in given.items():
        if name in hints:
            values[name] = from_json(hints[name], part, f"{at}.{name}")
        elif name != TYPE:
            raise NotAValueError(f"{at}: {wanted.__name__} has no field {printed(name)}")
    for field in fields(wanted):
        if field.init and field.name not in values and field.default is field.default_factory is MISSING:
            raise NotAValueError(f"{at}: {wanted.__name__} needs the field {field.name}")
    return wanted(**values)


@cache
def _hints(wanted: type) -> Mapping[str, Any]:
    hints = get_type_hints(wanted)
    return {field.name: hints[field.name] for field in fields(wanted)}


def _unexpected(given: Json, at: str, wanted: str) -> NotAValueError:
    return NotAValueError(f"{at}: {printed(given)} is not of type {wanted}")


def printed(given: Json) -> str:
    """Return JSON as text for a message, shortened."""
    text = json.dumps(given)
    return text if len(text) <= _PRINTED_MAX else f"{text[:_PRINTED_MAX]}…"
