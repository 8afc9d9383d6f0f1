"""Coverage of the attempts to detect mutants, and the order in which the attempts for one mutant are made."""

from inspect import getsourcelines

from chaos.mutants.coverage import Coverage, measure, prioritised
from chaos.mutants.mutations import Mutant
from reference_broker.core.quorum.quorum_state import QuorumState

MUTANT = Mutant("core.log", "Log.append", line=7, operator="constant", before="1", after="2", number=1)
"""A mutant in line 7 of its function."""


def coverage(name, *functions, lines=(), seconds=1.0):
    """Return the coverage of an attempt that ran these functions, and these lines of `Log.append`."""
    lines_run = {("core.log", "Log.append"): frozenset(lines)} if lines else {}
    return Coverage(name, frozenset(("core.log", function) for function in functions), lines_run, seconds)


def test_attempts_that_run_the_line_precede_those_that_run_the_function():
    coverages = [
        coverage("neither", "Log.read", "Log.flush"),
        coverage("function", "Log.append", "Log.read"),
        coverage("line", "Log.append", lines=[7]),
    ]
    assert prioritised(MUTANT, coverages) == ["line", "function", "neither"]


def test_attempts_that_run_a_rare_line_of_the_function_come_first():
    common = [coverage(f"common {number}", "Log.append", f"f{number}", lines=[6, 7]) for number in range(9)]
    rare = coverage("rare", "Log.append", lines=[7, 8])
    first, *others = prioritised(MUTANT, [*common, rare])
    assert first == "rare"
    assert set(others) == {attempt.name for attempt in common}


def test_attempts_that_run_more_new_functions_per_second_come_first():
    coverages = [
        coverage("two new", "Log.append", "a", "b"),
        coverage("none new", "Log.append", "a"),
        coverage("one new", "Log.append", "c"),
        coverage("one new, slow", "Log.append", "d", seconds=9.0),
    ]
    assert prioritised(MUTANT, coverages) == ["two new", "one new", "one new, slow", "none new"]


def test_attempts_that_were_not_measured_come_last():
    coverages = [
        coverage("not measured 1"),
        coverage("measured 1", "a", "b"),
        coverage("measured 2", "a"),
        coverage("not measured 2"),
    ]
    expected = ["measured 1", "measured 2", "not measured 1", "not measured 2"]
    assert prioritised(MUTANT, coverages) == expected


def test_functions_are_measured_everywhere_and_lines_only_in_functions_with_mutants():
    source, first = getsourcelines(QuorumState.can_grant_vote)
    function = module, name = QuorumState.__module__, QuorumState.can_grant_vote.__qualname__
    lines = range(first + 1, first + len(source))
    mutants = [Mutant(module, name, line, "constant", "", "", number=1) for line in lines]
    seed = "0"
    (measured,) = measure([seed], mutants, workers=1)
    assert len({module for module, _ in measured.functions}) > 10
    assert function in measured.functions
    assert measured.lines.keys() == {function}
    assert len(measured.lines[function]) > 3
    assert measured.seconds > 0
