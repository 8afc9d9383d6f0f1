"""Coverage of each attempt, by functions of the core and their lines, and the priority of attempts for a mutant.

Coverage is measured once on the clean core, with Python's tracing hook, and line by line only in functions with
mutants. A function that no attempt runs is a hole: no mutant in it can be detected.
"""

import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from types import CodeType, FrameType
from typing import Final

from chaos.campaign.workers import Job, in_order
from chaos.mutants.mutations import Mutant
from chaos.mutants.sample import PACKAGE

Function = tuple[str, str]
"""Module and qualified name of a function."""
Trace = Callable[[FrameType, str, object], "Trace | None"]

_SECONDS_MAX: Final = 600.0
"""Limit for one attempt, which usually takes some seconds."""
_RUNS_OF_A_LINE: Final = 4
"""Number of attempts that run each line of a mutant's function before any others are made."""


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Functions that one attempt runs, the lines that it runs of functions with mutants, and its processor time."""

    name: str
    functions: frozenset[Function]
    lines: Mapping[Function, frozenset[int]]
    seconds: float

    def lines_of(self, functions: Iterable[Function]) -> frozenset[int]:
        """Return the numbers of the lines of some functions of a module that the attempt runs."""
        return frozenset[int]().union(*(self.lines.get(function, ()) for function in functions))


def measure(names: Iterable[str], mutants: Iterable[Mutant], workers: int) -> Iterator[Coverage]:
    """Make each attempt once, in worker processes, and yield its coverage."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    for mutant in mutants:
        lines[mutant.module].add(mutant.line)
    job = Job(partial(_measure, dict(lines)), _SECONDS_MAX, _unmeasured, name=str)
    with closing(in_order(job, iter(names), workers)) as results:
        yield from results


def _unmeasured(name: str) -> Coverage:
    return Coverage(name, frozenset(), {}, _SECONDS_MAX)


def _measure(wanted: Mapping[str, set[int]], name: str) -> Coverage:
    from chaos.mutants.attempts import attempt  # imports the core

    modules: dict[CodeType, str] = {}
    own: dict[CodeType, set[int]] = {}
    missing: dict[CodeType, set[int]] = {}
    """Lines of each function with mutants that ran (`own`), and those of them that did not run (`missing`)."""

    def trace(frame: FrameType, _event: str, _argument: object) -> Trace | None:
        code = frame.f_code
        if code not in modules:
            module = modules[code] = frame.f_globals.get("__name__", "")
            lines = {line for *_, line in code.co_lines() if line is not None}
            own[code] = lines if module in wanted and wanted[module] & lines else set()
            missing[code] = set(own[code])
        return trace_line if missing[code] else None

    def trace_line(frame: FrameType, _event: str, _argument: object) -> Trace | None:
        left = missing[frame.f_code]
        left.discard(frame.f_lineno)
        return trace_line if left else None

    began = time.process_time()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        attempt(name)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    functions = {(module, _plain(code.co_qualname)) for code, module in modules.items() if module.startswith(PACKAGE)}
    ran: defaultdict[Function, frozenset[int]] = defaultdict(frozenset)
    for code, lines in own.items():
        if lines:
            ran[modules[code], _plain(code.co_qualname)] |= lines - missing[code]
    return Coverage(name, frozenset(functions), dict(ran), time.process_time() - began)


def _plain(qualname: str) -> str:
    """Return the name of the outermost function: mutants in nested functions are found by it."""
    return qualname.partition(".<locals>")[0]


def prioritised(mutant: Mutant, coverages: Sequence[Coverage]) -> list[str]:
    """Return the attempts by priority: those that run the mutant's line, then its function, then all others.

    An attempt that runs a line of the function that few others run comes first: a changed condition shows in the branch
    that is seldom taken. Similar attempts kill the same mutants. So the next attempt in each group is the one with the
    most new functions per second: functions that no earlier attempt of the group has run. If no attempt has any, the
    remaining attempts are ordered again in the same way. Attempts without functions come last.
    """
    parts = mutant.function.split(".")
    outer = {(mutant.module, ".".join(parts[:length])) for length in range(1, len(parts) + 1)}
    runs_line, runs_function, runs_neither = list[Coverage](), list[Coverage](), list[Coverage]()
    for coverage in coverages:
        if mutant.line in coverage.lines_of(outer):
            runs_line.append(coverage)
        elif outer & coverage.functions:
            runs_function.append(coverage)
        else:
            runs_neither.append(coverage)
    rare = list(_rare_first(runs_line, outer))
    others = [coverage for coverage in runs_line if coverage.name not in rare]
    return [*rare, *_diverse_first(others), *_diverse_first(runs_function), *_diverse_first(runs_neither)]


def _rare_first(coverages: Sequence[Coverage], functions: Iterable[Function]) -> Iterator[str]:
    """Yield attempts until each line of the functions was run `_RUNS_OF_A_LINE` times, rare lines first.

    An attempt counts by its lines that were not run often enough yet, each by the share of attempts that run it.
    """
    left = {coverage: coverage.lines_of(functions) for coverage in coverages}
    attempts = Counter(line for lines in left.values() for line in lines)
    runs = Counter[int]()

    def value(coverage: Coverage) -> float:
        needed = (line for line in left[coverage] if runs[line] < _RUNS_OF_A_LINE)
        return sum(1 / attempts[line] for line in needed) / coverage.seconds

    while left:
        best = max(left, key=value)
        if not value(best):
            return
        yield best.name
        runs.update(left.pop(best))


def _diverse_first(coverages: Sequence[Coverage]) -> Iterator[str]:
    """Yield the names by greedy set cover, repeated with the remaining attempts. Each bit of a number is a function."""
    bits = {
        function: 1 << bit
        for bit, function in enumerate({each for coverage in coverages for each in coverage.functions})
    }
    left = [(coverage, sum(bits[function] for function in coverage.functions)) for coverage in coverages]
    while left:
        seen = 0
        alike = []
        while left:
            best = max(left, key=lambda one: (one[1] & ~seen).bit_count() / one[0].seconds)
            left.remove(best)
            coverage, functions = best
            if functions & ~seen or not seen:
                seen |= functions
                yield coverage.name
            else:
                alike.append(best)
        left = alike
