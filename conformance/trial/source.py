"""Trials as readable Python source of several lines, and the import statements that this source needs."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from fixtures.python_source import source_of

_WIDTH: Final = 110
_INDENT: Final = "    "


def printed(value: object, *, used: int = 0, indent: str = "") -> str:
    """Return the source of a value, with a line for each of its parts where `repr` would be too long.

    :param used: number of other characters on the line if the value is printed on one line.
    """
    on_one_line = source_of(value)
    if len(indent) + used + len(on_one_line) <= _WIDTH:
        return on_one_line
    inner = indent + _INDENT
    if is_dataclass(value):
        parts = [
            f"{field.name}={printed(part, used=len(field.name) + 2, indent=inner)}"
            for field in fields(value)
            if (part := getattr(value, field.name)) != field.default
        ]
        opening, closing = f"{type(value).__name__}(", ")"
    elif isinstance(value, tuple):
        parts = [printed(part, used=1, indent=inner) for part in value]
        opening, closing = "(", ")"
    else:
        return on_one_line
    lines = "".join(f"{inner}{part},\n" for part in parts)
    return f"{opening}\n{lines}{indent}{closing}"


def imports_of(value: object) -> str:
    """Return the import statements of the classes in a value's source, a line for each module."""
    names = defaultdict[str, set[str]](set)
    for part in _parts(value):
        if is_dataclass(part) or isinstance(part, Enum):
            names[type(part).__module__].add(type(part).__name__)
    return "\n".join(_import(module, sorted(names[module])) for module in sorted(names))


def _import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    lines = "".join(f"{_INDENT}{name},\n" for name in names)
    return f"from {module} import (\n{lines})"


def _parts(value: object) -> Iterator[object]:
    """Yield a value and all values in its fields that its source contains."""
    yield value
    inner: list[object] = []
    if is_dataclass(value):
        given = ((field, getattr(value, field.name)) for field in fields(value))
        inner = [part for field, part in given if part != field.default]
    elif isinstance(value, tuple):
        inner = list(value)
    for part in inner:
        yield from _parts(part)
