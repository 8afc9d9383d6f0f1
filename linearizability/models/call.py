"""Text form of the operations of this package's models: an input is a tuple of the operation's name and arguments."""

from typing import Any, Final

SHOWN_MAX: Final = 200
"""The maximum number of characters of a value in a message."""


def describe_call(given: tuple[Any, ...], output: Any) -> str:
    """Return a call as text: `write(3)`, `read() -> 3`; an output of None is left out."""
    call = f"{given[0]}({', '.join(map(brief, given[1:]))})"
    return call if output is None else f"{call} -> {brief(output)}"


def brief(value: Any) -> str:
    """Return the `repr` of a value, cut if it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}… ({len(text)} characters)"


def whole_from_zero(what: str, number: Any) -> None:
    """Raise ValueError unless the number is an integer from 0. In Kafka, negative offsets and epochs are sentinels."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{what} is {brief(number)}, not a whole number from 0")


def no_such_operation(given: tuple[Any, ...], *names: str) -> ValueError:
    """Return the error for an input that a model does not know."""
    return ValueError(f"no such operation: {brief(given[0])}; known are {', '.join(names)}")
