"""Trials as Python source, over several lines for a person to read."""

from dataclasses import fields, is_dataclass
from typing import Final

from fixtures.python_source import source_of

_WIDTH: Final = 110
_INDENT: Final = "    "


def printed(value: object, *, used: int = 0, indent: str = "") -> str:
    """Return the source of a value, with a line for each of its parts where `repr` would be too long.

    :param used: number of characters before it on its first line, or after it on its last.
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
