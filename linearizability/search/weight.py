"""What the states that a search keeps weigh, by looking at one of so many.

A state shares most of what it holds with the state it came from and with the history, and what it shares costs nothing.
So a look follows everything that a state refers to, whatever type it has, and counts what the state before and the
operation do not refer to as well. Looks are far apart, since one takes as long as many steps do: the first states are
looked at often, later ones each `STRIDE_MAX`-th, and a state stands for those since the look before.
"""

import gc
import sys
from collections.abc import Container
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

STRIDE_MAX: Final = 251
"""A prime, so that looks do not keep step with a pattern in the states."""
OBJECTS_MAX: Final = 50_000
"""A look follows about so many objects of a state, and no more."""
_NOT_FOLLOWED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType)


class Weight:
    """The bytes of all states up to now, and the number of the state at which to look again."""

    __slots__ = ("_bytes", "_latest", "_looked_at", "_shared", "look_at")

    def __init__(self) -> None:
        self.look_at = 0
        self._bytes = self._latest = 0
        self._looked_at = -1
        self._shared: set[int] = set()

    def look(self, place: int, state: Any, *known: Any) -> None:
        """Weigh the state with that number, not counting what it shares with what is known.

        The caller keeps the state: what was counted is known by its identity from then on.
        """
        found = _reachable(state, _reachable(known), self._shared)
        self._latest = sum([sys.getsizeof(one, 0) for one in found.values()])
        self._shared.update(found)
        stride = place - self._looked_at
        self._bytes += self._latest * stride
        self._looked_at = place
        self.look_at = place + min(2 * stride, STRIDE_MAX)

    def bytes(self, count: int) -> int:
        """About what so many states occupy: those behind the last look are taken to be like the one looked at."""
        return self._bytes + self._latest * max(0, count - 1 - self._looked_at)


def _reachable(value: Any, *known: Container[int]) -> dict[int, Any]:
    """Everything that a value refers to, and itself, by identity; nothing of what is known, or behind that."""
    found: dict[int, Any] = {}
    level = [value]
    while level and len(found) < OBJECTS_MAX:
        new = {
            id(one): one
            for one in level
            if id(one) not in found and not any(id(one) in of for of in known) and not isinstance(one, _NOT_FOLLOWED)
        }
        found.update(new)
        level = gc.get_referents(*new.values())
    return found
