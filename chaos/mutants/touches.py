"""Which attempts run which functions of the core: those that do are made first against a mutant of one.

It is measured once, on the clean core, with Python's profiling hook. A function that no attempt runs is a hole by
itself: no mutant of it can be seen.
"""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType

from chaos.mutants.sample import PACKAGE

Function = tuple[str, str]
"""Module, and qualified name."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What one attempt runs, and what it takes of the processor."""

    name: str
    functions: frozenset[Function]
    seconds: float


def measure(names: Sequence[str]) -> Sequence[Touch]:
    """Make each attempt once."""
    return [_measure(name) for name in names]


def _measure(name: str) -> Touch:
    from chaos.mutants.attempts import attempt  # imports the core

    seen: dict[CodeType, str] = {}

    def look(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code not in seen:
            seen[code] = frame.f_globals.get("__name__", "")

    began = time.process_time()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        attempt(name)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = {(module, _plain(code.co_qualname)) for code, module in seen.items() if module.startswith(PACKAGE)}
    return Touch(name, frozenset(functions), time.process_time() - began)


def _plain(qualname: str) -> str:
    """Without what lies inside a function: mutants are named by that too, and found by the outer one."""
    return qualname.partition(".<locals>")[0]


def in_order_for(function: Function, touches: Sequence[Touch]) -> list[str]:
    """The attempts: those that run the function first, and of these what is unlike those before, for its time.

    Attempts that are alike kill the same mutants. So each is the one that runs the most functions a second which those
    before it have not run; when there is none, that begins again with the rest.
    """
    module, qualname = function
    parts = qualname.split(".")
    outer = {(module, ".".join(parts[:length])) for length in range(1, len(parts) + 1)}
    near = [touch for touch in touches if outer & touch.functions]
    far = [touch for touch in touches if not outer & touch.functions]
    return [*_unlike(near), *_unlike(far)]


def _unlike(touches: Sequence[Touch]) -> Iterator[str]:
    """Names, in rounds of a greedy set cover."""
    left = list(touches)
    while left:
        seen: set[Function] = set()
        alike = []
        while left:
            best = max(left, key=lambda touch: len(touch.functions - seen) / touch.seconds)
            left.remove(best)
            if best.functions <= seen:
                alike.append(best)
                continue
            seen |= best.functions
            yield best.name
        left = alike
