"""Which attempts run which functions of the core, and which lines of the mutants: those are made first.

It is measured once, on the clean core, with Python's tracing hook, line by line only in functions that have mutants. A
function that no attempt runs is a hole by itself: no mutant of it can be seen.
"""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType

from chaos.mutants.mutations import Mutant
from chaos.mutants.sample import PACKAGE

Function = tuple[str, str]
"""Module, and qualified name."""
Line = tuple[str, int]
"""Module, and number."""
Trace = Callable[[FrameType, str, object], "Trace | None"]


@dataclass(frozen=True, slots=True)
class Touch:
    """What one attempt runs, and what it takes of the processor."""

    name: str
    functions: frozenset[Function]
    lines: frozenset[Line]
    seconds: float


def measure(names: Sequence[str], mutants: Iterable[Mutant]) -> Sequence[Touch]:
    """Make each attempt once, and look at the lines of the mutants."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    for mutant in mutants:
        lines[mutant.module].add(mutant.line)
    return [_measure(name, lines) for name in names]


def _measure(name: str, wanted: Mapping[str, set[int]]) -> Touch:
    from chaos.mutants.attempts import attempt  # imports the core

    modules: dict[CodeType, str] = {}
    own: dict[CodeType, set[int]] = {}
    missing: dict[CodeType, set[int]] = {}
    """The lines of mutants in each function that ran, and those of them that did not."""

    def look(frame: FrameType, _event: str, _argument: object) -> Trace | None:
        code = frame.f_code
        if code not in modules:
            module = modules[code] = frame.f_globals.get("__name__", "")
            own[code] = wanted[module] & {line for *_, line in code.co_lines()} if module in wanted else set()
            missing[code] = set(own[code])
        return look_at_line if missing[code] else None

    def look_at_line(frame: FrameType, _event: str, _argument: object) -> Trace | None:
        left = missing[frame.f_code]
        left.discard(frame.f_lineno)
        return look_at_line if left else None

    began = time.process_time()
    threading.settrace(look)
    sys.settrace(look)
    try:
        attempt(name)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    functions = {(module, _plain(code.co_qualname)) for code, module in modules.items() if module.startswith(PACKAGE)}
    lines = {(modules[code], line) for code in own for line in own[code] - missing[code]}
    return Touch(name, frozenset(functions), frozenset(lines), time.process_time() - began)


def _plain(qualname: str) -> str:
    """Without what lies inside a function: mutants are named by that too, and found by the outer one."""
    return qualname.partition(".<locals>")[0]


def in_order_for(mutant: Mutant, touches: Sequence[Touch]) -> list[str]:
    """The attempts: those that run its line, then its function; of these what is unlike those before, for its time.

    Attempts that are alike kill the same mutants. So each is the one that runs the most functions a second which those
    before it have not run; when there is none, that begins again with the rest.
    """
    parts = mutant.function.split(".")
    outer = {(mutant.module, ".".join(parts[:length])) for length in range(1, len(parts) + 1)}
    of_line, of_function, far = list[Touch](), list[Touch](), list[Touch]()
    for touch in touches:
        if (mutant.module, mutant.line) in touch.lines:
            of_line.append(touch)
        elif outer & touch.functions:
            of_function.append(touch)
        else:
            far.append(touch)
    return [*_unlike(of_line), *_unlike(of_function), *_unlike(far)]


def _unlike(touches: Sequence[Touch]) -> Iterator[str]:
    """Names, in rounds of a greedy set cover; a set of functions is the bits of a number."""
    bits = {function: 1 << bit for bit, function in enumerate({each for touch in touches for each in touch.functions})}
    left = [(touch, sum(bits[function] for function in touch.functions)) for touch in touches]
    while left:
        seen = 0
        alike = []
        while left:
            best = max(left, key=lambda one: (one[1] & ~seen).bit_count() / one[0].seconds)
            left.remove(best)
            touch, functions = best
            if functions & ~seen:
                seen |= functions
                yield touch.name
            else:
                alike.append(best)
        left = alike
