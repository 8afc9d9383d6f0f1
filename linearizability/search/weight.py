"""Memory estimate for the states that a search keeps, from a sample of them.

A state shares most objects with its predecessor and with the history; these are not counted. A *look* follows all
references from one state. It counts the objects to which neither the predecessor nor the operation refers, and which no
earlier look has counted. The result of a look is assumed for all states since the previous look.

One look takes as long as many steps of the search. Therefore looks become rarer while the number of states grows, down
to one look for `STRIDE_MAX` states.
"""

import gc
import sys
from collections.abc import Container
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

STRIDE_MAX: Final = 251
"""Maximum number of states from one look to the next. It is a prime, so that looks miss no period in the states."""
OBJECTS_MAX: Final = 50_000
"""The approximate maximum number of objects that a look follows."""
_NOT_FOLLOWED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType)


class Weight:
    """The estimated memory of all states so far.

    `look_at` is the number of the state for the next look.
    """

    __slots__ = ("_bytes", "_latest", "_looked_at", "_shared", "look_at")

    def __init__(self) -> None:
        self.look_at = 0
        self._bytes = self._latest = 0
        self._looked_at = -1
        self._shared: set[int] = set()

    def look(self, number: int, state: Any, *known: Any) -> None:
        """Count the bytes of the state with this number, without the objects that it shares with `known` values.

        The caller must keep the state alive, because counted objects are recognised by their identity.
        """
        found = _reachable(state, _reachable(known), self._shared)
        self._latest = sum([sys.getsizeof(one, 0) for one in found.values()])
        self._shared.update(found)
        stride = number - self._looked_at
        self._bytes += self._latest * stride
        self._looked_at = number
        self.look_at = number + min(2 * stride, STRIDE_MAX)

    def bytes(self, count: int) -> int:
        """Return the estimated memory of `count` states. For states after the last look, its result is assumed."""
        return self._bytes + self._latest * max(0, count - 1 - self._looked_at)


def _reachable(value: Any, *known: Container[int]) -> dict[int, Any]:
    """Return, by identity, a value and all objects that it references, except the known ones."""
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
