"""Expected responses: values by field name, and the alternatives where Kafka permits several."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from conformance.sequential.read_records import are_records, compared
from conformance.sequential.real_values import with_real_values
from conformance.sequential.response import INVALID_FIELDS, NO_RESPONSE_FIELDS, Response

Expectation: TypeAlias = Mapping[str, Any]
"""Field name to a value, a `OneOf`, a `Satisfies` or an `Each`. A field that is not named may have any value."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Several permitted values, with the reason."""

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
    """Several responses in order, each with its own expectation (a pipeline, or the parts of one response)."""

    expectations: tuple[Expectation, ...]


_IDENTIFYING_FIELDS: Final = frozenset(
    {
        *("error", "records", "producers"),
        *("topics", "num_partitions", "set", "committed_offset", "metadata", "state", "members"),
    }
)
"""Fields that show to which of several requests a response belongs. Requirements of the API judge other fields."""
_OFFSETS_AND_TIMES: Final = frozenset(
    {
        *("base_offset", "offset", "low_watermark", "end_offset", "high_watermark", "log_start_offset"),
        *("timestamp", "log_append_time"),
    }
)
"""More of these fields. Beside an error, they have no meaning."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field whose value is not as expected."""

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
                _own_mismatches(one, response) for one, response in zip(expectations, actual, strict=True)
            )
        case _:
            return bool(actual == expected)


def _own_mismatches(expectation: Expectation, response: Response) -> list[Mismatch]:
    """Return the mismatches of one of several responses, in the fields that show to which request it belongs."""
    has_error = expectation.get("error", "NONE") != "NONE"
    return mismatches(expectation, response, _IDENTIFYING_FIELDS | (frozenset() if has_error else _OFFSETS_AND_TIMES))


def mismatches(expectation: Expectation, response: Response, judged: frozenset[str] | None = None) -> list[Mismatch]:
    """Return the fields of a response that differ from the expectation.

    A field that the version lacks is skipped. A missing response is a mismatch unless it is expected, and so is a
    response where none is expected. Invalid fields are mismatches if they are judged.

    :param judged: names of the fields to compare; None for all.
    """
    failed = sorted(NO_RESPONSE_FIELDS & response.keys() - expectation.keys())
    found = [Mismatch(name, "a response", str(response[name])) for name in failed]
    if judged is not None and INVALID_FIELDS in judged & response.keys():
        found.append(Mismatch(INVALID_FIELDS, "none", "; ".join(response[INVALID_FIELDS])))
    for name, expected in expectation.items():
        is_unexpected_response = name in NO_RESPONSE_FIELDS and name not in response
        if is_unexpected_response:
            found.append(Mismatch(name, str(expected), f"a response: {dict(response)}"))
        elif name in response and (judged is None or name in judged) and not meets(expected, response[name]):
            found.append(Mismatch(name, *_texts(expected, response[name])))
    return found


def _texts(expected: Any, actual: Any) -> tuple[str, str]:
    """Return an expected and an actual value in words. Of several responses, only the first wrong field is named."""
    if isinstance(expected, Each) and len(actual) == len(expected.expectations):
        for number, (one, response) in enumerate(zip(expected.expectations, actual, strict=True), start=1):
            for wrong in _own_mismatches(one, response):
                place = f"in number {number}"
                return f"{wrong.field} {wrong.expected} {place}", f"{wrong.field} {wrong.actual} {place}"
    alternatives = expected.values if isinstance(expected, OneOf) else (expected,)
    if not all(map(are_records, (*alternatives, actual))):
        return _text(with_real_values(expected, actual)), _text(actual)
    wanted, found = compared(alternatives, actual)
    return f"{wanted} ({expected.reason})" if isinstance(expected, OneOf) else wanted, found


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | OneOf | Satisfies) else repr(value)
