"""Definition of a property: type, default, bounds and parsing.

Follows: org.apache.kafka.common.config.ConfigDef (KIP-226, KIP-569).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """Type of a property, with the numbers of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ConfigSource(IntEnum):
    """Source of a value, with the numbers of DescribeConfigs; the members are in order of precedence."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class InvalidConfigError(Exception):
    """An unknown property or invalid value. For topic properties and dynamic properties, the message is Kafka's."""


Value = bool | int | float | str
"""Parsed value of a property. A list is a string of distinct elements, separated by commas without spaces."""

_INTEGER_BOUNDS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")  # far more digits than a LONG has; `int` rejects more than 4,300
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that Java's `String.trim` removes."""
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Definition of a property.

    :param default: default as text; null if the property has none.
    :param allowed: valid texts, of each element if the property is a list; empty if any text is valid.
    :param synonyms: broker properties whose values apply if the topic does not set the property, in order of
        precedence. Each has the factor from its unit to that of the topic's property (3,600,000 for
        `log.retention.hours`).
    :param validator: called with a value that has passed all other checks; returns why it is invalid, or null.
    """

    name: str
    type: ConfigType
    default: str | None
    minimum: float | None = None
    maximum: float | None = None
    allowed: tuple[str, ...] = ()
    synonyms: tuple[tuple[str, int], ...] = ()
    validator: Callable[[Value], str | None] | None = None

    def parse(self, text: str) -> Value:
        """Return the value that a text represents. Raises `InvalidConfigError` if it is invalid."""
        value = self._typed(text.strip(_TRIMMED))
        if self.minimum is not None and not isinstance(value, str) and value < self.minimum:
            raise self._invalid(value, f"Value must be at least {self.minimum}")
        if self.maximum is not None and not isinstance(value, str) and value > self.maximum:
            raise self._invalid(value, f"Value must be no more than {self.maximum}")
        for element in self._elements(value) if self.allowed else ():
            if element not in self.allowed:
                raise self._invalid(element, f"String must be one of: {', '.join(self.allowed)}")
        reason = None if self.validator is None else self.validator(value)
        if reason is not None:
            shown = f"[{', '.join(str(value).split(','))}]" if self.type is ConfigType.LIST else value
            raise self._invalid(shown, reason)
        return value

    def _elements(self, value: Value) -> list[str]:
        """Return the elements of a list, or any other value as the only element."""
        if self.type is not ConfigType.LIST:
            return [str(value)]
        elements = str(value).split(",") if value else []
        if not all(elements):
            raise InvalidConfigError(f"Configuration '{self.name}' values must not be empty.")
        return elements

    def _typed(self, text: str) -> Value:
        """Return a text as a value of the property's type."""
        match self.type:
            case ConfigType.BOOLEAN:
                if text.lower() not in {"true", "false"}:
                    raise self._invalid(text, "Expected value to be either true or false")
                return text.lower() == "true"
            case ConfigType.STRING:
                return text
            case ConfigType.LIST:
                return ",".join(dict.fromkeys(element.strip() for element in text.split(",")))
            case ConfigType.DOUBLE:
                self._require_number(text, _DOUBLE)
                return float(text)
            case _:
                self._require_number(text, _INTEGER)
                value = int(text)
                lowest, highest = _INTEGER_BOUNDS[self.type]
                if not lowest <= value <= highest:
                    raise self._invalid(text, f"Not a number of type {self.type.name}")
                return value

    def _require_number(self, text: str, pattern: re.Pattern[str]) -> None:
        if not pattern.fullmatch(text):
            raise self._invalid(text, f"Not a number of type {self.type.name}")

    def _invalid(self, value: Value, reason: str) -> InvalidConfigError:
        return InvalidConfigError(f"Invalid value {value} for configuration {self.name}: {reason}")


def canonical(value: Value) -> str:
    """Return a value as text in the form of DescribeConfigs, which does not depend on how the value was written."""
    return str(value).lower() if isinstance(value, bool) else str(value)
