"""How the models here write an operation: its input is a tuple, the name first."""

from typing import Any


def describe_call(given: tuple[Any, ...], output: Any) -> str:
    """`write(3)`, `read() -> 3`: an answer of None is none."""
    call = f"{given[0]}({', '.join(map(repr, given[1:]))})"
    return call if output is None else f"{call} -> {output!r}"


def no_such_operation(given: tuple[Any, ...], *names: str) -> ValueError:
    """The error for an input that a model does not know."""
    return ValueError(f"no such operation: {given[0]!r}; there are {', '.join(names)}")
