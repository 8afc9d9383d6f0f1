"""Coverage of each attempt, and the priority of attempts for a mutant.

Coverage is measured once, on the clean core, with Python's tracing hook: which functions of the core an attempt runs
and, in functions with mutants, which lines. A mutant in a function that no attempt runs cannot be detected.
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
"""Limit of the processor time of one attempt, which usually takes some seconds."""
_RUNS_OF_A_LINE: Final = 4
"""Each line of a mutant's function is run by this number of attempts before other attempts are made."""


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Coverage of one attempt.

    :ivar name: name of the attempt.
    :ivar functions: functions of the core that it runs.
    :ivar lines: numbers of the lines that it runs, by function; only of functions with mutants.
    :ivar seconds: its processor time.
    """

    name: str
    functions: frozenset[Function]
    lines: Mapping[Function, frozenset[int]]
    seconds: float

    def lines_of(self, functions: Iterable[Function]) -> frozenset[int]:
        """Return the numbers of the lines that the attempt runs in these functions, which are in one module."""
        return frozenset[int]().union(*(self.lines.get(function, ()) for function in functions))


def measure(names: Iterable[str], mutants: Iterable[Mutant], workers: int) -> Iterator[Coverage]:
    """Make each attempt once, in worker processes; yield the coverages in the order of names.

    :param mutants: mutants whose functions are measured line by line.
    """
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
    """By function, all its lines if it has mutants (`own`), and those of these lines that have not run (`missing`)."""

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
    """Return the name of the outermost function. Lines of nested functions count as lines of that function."""
    return qualname.partition(".<locals>")[0]


def prioritised(mutant: Mutant, coverages: Sequence[Coverage]) -> list[str]:
    """Return the names of attempts by priority.

    1. Attempts that run the mutant's line. Those that run rare lines of its function come first (`_rare_first`),
       because a changed condition often shows only in a branch that is seldom taken.
    2. Attempts that run the mutant's function.
    3. All others.

    In each group, similar attempts are kept apart (`_diverse_first`), because they kill the same mutants.
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
    """Yield names of attempts until each line of the functions is run by `_RUNS_OF_A_LINE` of them.

    The next attempt is the one with the highest value per second of its processor time. Each line that it runs, and
    that was not run often enough before, adds 1 / (number of attempts that run the line). So rare lines count more.
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
    """Yield the names of attempts so that those with new functions come first (greedy set cover).

    A function is new if no attempt yielded before runs it. The next attempt is the one with the most new functions per
    second of its processor time. When no attempt has new functions, this begins again with the remaining attempts. In
    the implementation, a set of functions is an integer with one bit for each function.
    """
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
