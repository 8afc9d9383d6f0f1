"""What an answer ought to be: values by field name, and where Kafka leaves a choice, the choices and why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from conformance.sequential.answer import NO_ANSWER_FIELDS, Answer

Expectation: TypeAlias = Mapping[str, Any]
"""Field name to a value, a `OneOf`, a `Satisfies` or an `Each`. A field that is not named may be anything."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Several values are lawful, for the reason given."""

    values: tuple[Any, ...]
    reason: str

    def __str__(self) -> str:
        return " or ".join(map(repr, self.values)) + f" ({self.reason})"


@dataclass(frozen=True, slots=True)
class Satisfies:
    """Any value for which `holds` is true."""

    text: str
    holds: Callable[[Any], bool]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Each:
    """Several answers in a row, each with its own expectation (a pipeline)."""

    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field that is not what it ought to be."""

    field: str
    expected: str
    actual: str


def meets(expected: Any, actual: Any) -> bool:
    """Whether one field's value is as expected."""
    match expected:
        case OneOf(values=values):
            return actual in values
        case Satisfies(holds=holds):
            return holds(actual)
        case Each(expectations=expectations):
            return len(actual) == len(expectations) and not any(
                mismatches(one, answer) for one, answer in zip(expectations, actual, strict=True)
            )
        case _:
            return bool(actual == expected)


def mismatches(expectation: Expectation, answer: Answer, judged: frozenset[str] | None = None) -> list[Mismatch]:
    """The fields of an answer that differ from the expectation.

    A field that the answer's version lacks is passed over. No answer at all, where one is expected, never is.

    :param judged: look only at these fields; null: at all.
    """
    unanswered = sorted(NO_ANSWER_FIELDS & answer.keys() - expectation.keys())
    found = [Mismatch(name, "an answer", str(answer[name])) for name in unanswered]
    for name, expected in expectation.items():
        missing_connection = name in NO_ANSWER_FIELDS and name not in answer
        if missing_connection:
            found.append(Mismatch(name, str(expected), f"an answer: {dict(answer)}"))
        elif name in answer and (judged is None or name in judged) and not meets(expected, answer[name]):
            found.append(Mismatch(name, _text(expected), _text(answer[name])))
    return found


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | OneOf | Satisfies) else repr(value)
