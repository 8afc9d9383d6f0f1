"""Scripts as Python source: over several lines for a person, and read back without running anything.

What is read may hold calls of the classes that a script is made of, members of their enums, tuples, numbers, strings
and the three names; anything else is refused.
"""

import ast
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from chaos import faults
from chaos.simulation import script as scripts
from chaos.simulation.script import Script
from conformance.concurrent.moves import source_of

_WIDTH: Final = 110
_INDENT: Final = "    "
_NAMES: Final = {name: getattr(module, name) for module in (faults, scripts) for name in module.__all__}


class NotAScriptError(ValueError):
    """A text is not the source of a script. The message is one line."""


def printed(value: object, *, used: int = 0, indent: str = "") -> str:
    """The source of a value, of which `repr` is one long line: a long part has a line for each of its parts.

    :param used: how many characters stand before it on its first line, or behind it on its last.
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


def parsed(source: str) -> Script:
    """The script of a source. Raises `NotAScriptError`."""
    try:
        value = _value(ast.parse(source, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, KeyError) as error:
        raise NotAScriptError(f"not the source of a script: {error}") from None
    if not isinstance(value, Script):
        raise NotAScriptError(f"the source of a {type(value).__name__}, where a Script was expected")
    return value


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return -value
        case ast.Tuple(elements):
            return tuple(map(_value, elements))
        case ast.Attribute(ast.Name(name), member) if isinstance(_named(name), type) and issubclass(_named(name), Enum):
            return _named(name)[member]
        case ast.Call(ast.Name(name), positional, keywords):
            named = {keyword.arg: _value(keyword.value) for keyword in keywords if keyword.arg}
            return _named(name)(*map(_value, positional), **named)
    raise ValueError(f"{ast.unparse(node)} is nothing that a script is made of")


def _named(name: str) -> Any:
    if name not in _NAMES:
        raise ValueError(f"{name} is nothing that a script is made of")
    return _NAMES[name]
