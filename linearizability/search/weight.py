"""Memory estimate for the states that a search keeps, from a sample of them.

A state shares most objects with its predecessor and with the history; these are not counted. A *look* follows all
references from a state. It counts the objects to which neither its predecessor nor the operation refers, and which no
earlier look has counted. One look takes as long as many steps of the search. So the more states there are, the rarer
are the looks, down to one for `STRIDE_MAX` states. The result of a look is assumed for all states since the previous
look.
"""

import gc
import sys
from collections.abc import Container
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

STRIDE_MAX: Final = 251
"""A prime, so that looks do not coincide with a period in the states."""
OBJECTS_MAX: Final = 50_000
"""The approximate maximum number of objects that a look follows."""
_NOT_FOLLOWED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType)


class Weight:
    """The bytes of all states so far, and the number of the state for the next look."""

    __slots__ = ("_bytes", "_latest", "_looked_at", "_shared", "look_at")

    def __init__(self) -> None:
        self.look_at = 0
        self._bytes = self._latest = 0
        self._looked_at = -1
        self._shared: set[int] = set()

    def look(self, place: int, state: Any, *known: Any) -> None:
        """Weigh the state with this number, without the objects that it shares with known ones.

        The caller must keep the state alive, because counted objects are recognised by their identity.
        """
        found = _reachable(state, _reachable(known), self._shared)
        self._latest = sum([sys.getsizeof(one, 0) for one in found.values()])
        self._shared.update(found)
        stride = place - self._looked_at
        self._bytes += self._latest * stride
        self._looked_at = place
        self.look_at = place + min(2 * stride, STRIDE_MAX)

    def bytes(self, count: int) -> int:
        """Return the approximate size of `count` states; the result of the last look is assumed for those after it."""
        return self._bytes + self._latest * max(0, count - 1 - self._looked_at)


def _reachable(value: Any, *known: Container[int]) -> dict[int, Any]:
    """Return, by identity, a value and all objects to which it refers, except the known ones."""
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
