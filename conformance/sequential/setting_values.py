"""Numbers for the `BrokerSetting` placeholders of raw requests, from the settings that the broker describes.

A limit that a broker describes must be the one that it applies. To check this, one request has the described value,
which the broker must accept, and another has the next value, just beyond the limit, which the broker must reject.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.sequential.steps import BrokerSetting, RawRequest
from fixtures.clients.raw import UnsupportedApi

_OTHER_BYTES_MAX: Final = 1_000
"""Maximum size of a stored record, without the text whose length depends on a setting."""


def names_of_settings(value: Any) -> Iterator[str]:
    """Yield the names of the settings in the fields of a request, at every depth."""
    match value:
        case Mapping():
            yield from names_of_settings(tuple(value.values()))
        case tuple():
            for inner in value:
                yield from names_of_settings(inner)
        case BrokerSetting():
            yield from filter(None, (value.name, value.stored_within))


def with_settings(step: RawRequest, described: Mapping[str, str | None]) -> RawRequest:
    """Return the request with numbers in place of its placeholders. Raises `UnsupportedApi` for too high a number.

    :param described: the values of the settings that the broker describes, by name.
    """
    return replace(step, fields=_replaced(step.fields, described))


def _replaced(value: Any, described: Mapping[str, str | None]) -> Any:
    match value:
        case Mapping():
            return {name: _replaced(inner, described) for name, inner in value.items()}
        case tuple():
            return tuple(_replaced(inner, described) for inner in value)
        case BrokerSetting():
            return _value(value, described)
    return value


def _value(setting: BrokerSetting, described: Mapping[str, str | None]) -> int:
    number = _number(described.get(setting.name))
    limit = _number(described.get(setting.stored_within))
    if number is None:
        return setting.otherwise
    if number + setting.plus > setting.at_most:
        raise UnsupportedApi(f"{setting.name} is {number}, and a request has at most {setting.at_most}")
    if limit is not None and number + setting.plus > limit - _OTHER_BYTES_MAX:
        raise UnsupportedApi(f"{setting.name} is {number}, but {setting.stored_within} is {limit}")
    return number + setting.plus


def _number(described: str | None) -> int | None:
    return int(described) if described is not None and described.removeprefix("-").isdecimal() else None
