"""Values of a response that are compared by symbol, and the real values behind them, for messages.

Ids and times differ between runs. Therefore only symbols are compared: an id by its index in the order in which ids
were first seen, times and sizes by whether two responses have the same. The text of a symbol has what the broker
returned.
"""

from typing import Any, Self


class IdSymbol(int):
    """Index of an id in the order in which ids were first seen.

    :ivar seen: the ids that had been seen when the symbol was created, by index.
    """

    seen: tuple[str, ...]

    def __new__(cls, index: int, seen: tuple[str, ...] = ()) -> Self:
        """Return the symbol for an index."""
        symbol = super().__new__(cls, index)
        symbol.seen = seen
        return symbol

    def __repr__(self) -> str:
        index = int(self)
        return f"{index} ({self.seen[index] if index < len(self.seen) else 'an id not seen before'})"

    __str__ = __repr__


class Comparison(str):
    """Result of a comparison of values, such as "as returned".

    :ivar values: the values, or empty if they do not matter.
    """

    __slots__ = ("values",)

    values: str

    def __new__(cls, result: str, values: str = "") -> Self:
        """Return the result of a comparison of these values."""
        comparison = super().__new__(cls, result)
        comparison.values = values
        return comparison

    def __str__(self) -> str:
        result = str.__str__(self)
        return f"{result} ({self.values})" if self.values else result


def with_real_values(expected: Any, actual: Any) -> Any:
    """Return an expected value with the real ids behind its symbols, as far as the actual value has symbols there."""
    match expected, actual:
        case tuple(), tuple() if len(expected) == len(actual):
            return tuple(map(with_real_values, expected, actual))
        case int(), IdSymbol() if expected >= 0:
            return IdSymbol(expected, actual.seen)
    return expected
