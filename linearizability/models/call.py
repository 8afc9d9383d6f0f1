"""How the models here write an operation: its input is a tuple, the name first."""

from typing import Any, Final

SHOWN_MAX: Final = 200
"""So much of a value is told."""


def describe_call(given: tuple[Any, ...], output: Any) -> str:
    """`write(3)`, `read() -> 3`: an answer of None is none."""
    call = f"{given[0]}({', '.join(map(brief, given[1:]))})"
    return call if output is None else f"{call} -> {brief(output)}"


def brief(value: Any) -> str:
    """As `repr`, of which only the beginning if it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}… ({len(text)} characters)"


def whole_from_zero(what: str, number: Any) -> None:
    """Raise ValueError for what is no offset, epoch or generation: a negative one would be taken for something else."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{what} is {brief(number)}, not a whole number from 0")


def no_such_operation(given: tuple[Any, ...], *names: str) -> ValueError:
    """The error for an input that a model does not know."""
    return ValueError(f"no such operation: {brief(given[0])}; there are {', '.join(names)}")
