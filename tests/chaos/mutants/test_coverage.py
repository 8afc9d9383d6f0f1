"""Coverage of the attempts to detect mutants, and the order in which they are made for one mutant."""

from chaos.mutants.coverage import Coverage, measure, prioritised
from chaos.mutants.mutations import Mutant

MUTANT = Mutant("core.log", "Log.append", 7, "constant", "1", "2", 1)


def coverage(name, *functions, lines=(), seconds=1.0):
    ran = {("core.log", "Log.append"): frozenset(lines)} if lines else {}
    return Coverage(name, frozenset(("core.log", each) for each in functions), ran, seconds)


def test_attempts_that_run_the_line_precede_those_that_run_the_function():
    coverages = [
        coverage("elsewhere", "Log.read", "Log.flush"),
        coverage("function", "Log.append", "Log.read"),
        coverage("line", "Log.append", lines=[7]),
    ]
    assert prioritised(MUTANT, coverages) == ["line", "function", "elsewhere"]


def test_attempts_that_run_a_rare_line_of_the_function_come_first():
    common = [coverage(f"common {number}", "Log.append", f"f{number}", lines=[6, 7]) for number in range(9)]
    rare = coverage("rare", "Log.append", lines=[7, 8])
    first, *others = prioritised(MUTANT, [*common, rare])
    assert first == "rare"
    assert set(others) == {each.name for each in common}


def test_attempts_that_differ_from_earlier_ones_come_first():
    coverages = [
        coverage("large", "Log.append", "a", "b"),
        coverage("alike", "Log.append", "a"),
        coverage("unlike", "Log.append", "c"),
        coverage("slow", "Log.append", "d", seconds=9.0),
    ]
    assert prioritised(MUTANT, coverages) == ["large", "unlike", "slow", "alike"]


def test_attempts_that_were_not_measured_come_last():
    coverages = [
        coverage("overdue"),
        coverage("measured", "a", "b"),
        coverage("alike", "a"),
        coverage("overdue too"),
    ]
    assert prioritised(MUTANT, coverages) == ["measured", "alike", "overdue", "overdue too"]


def test_an_attempt_records_its_functions_and_the_lines_of_mutants():
    module = "reference_broker.core.quorum.quorum_state"
    wanted = [Mutant(module, "QuorumState.can_grant_vote", line, "constant", "", "", 1) for line in range(1, 1000)]
    (seen,) = measure(["0"], wanted, workers=1)
    assert (module, "QuorumState.can_grant_vote") in seen.functions
    assert len(seen.lines[module, "QuorumState.can_grant_vote"]) > 3
    assert {where for where, _ in seen.lines} == {module}
    assert seen.seconds > 0
