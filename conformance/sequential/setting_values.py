"""Raw requests with numbers at the limits of a broker: each `BrokerSetting` is replaced by the described setting.

A limit that a broker describes must be the one that it applies. Therefore these requests have the value of the setting,
which the broker must accept, and the next one, which it must reject.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from conformance.sequential.steps import BrokerSetting, RawRequest
from fixtures.clients.raw import UnsupportedApi


def names_of_settings(value: Any) -> Iterator[str]:
    """Yield the names of the settings in the fields of a request, at every depth."""
    match value:
        case Mapping():
            yield from names_of_settings(tuple(value.values()))
        case tuple():
            for inner in value:
                yield from names_of_settings(inner)
        case BrokerSetting():
            yield value.name


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
            return _number(value, described.get(value.name))
    return value


def _number(setting: BrokerSetting, described: str | None) -> int:
    if described is None or not described.removeprefix("-").isdecimal():
        return setting.otherwise
    number = int(described) + setting.plus
    if number > setting.at_most:
        raise UnsupportedApi(f"{setting.name} is {described}, and a request has at most {setting.at_most}")
    return number
