"""Order of the attempts against a mutant."""

from chaos.mutants.mutations import Mutant
from chaos.mutants.touches import Touch, in_order_for, measure

MUTANT = Mutant("core.log", "Log.append", 7, "constant", "1", "2", 1)


def touch(name, *functions, lines=(), seconds=1.0):
    return Touch(name, frozenset(("core.log", each) for each in functions), frozenset(lines), seconds)


def test_attempts_that_run_the_line_precede_those_that_run_the_function():
    touches = [
        touch("elsewhere", "Log.read", "Log.flush"),
        touch("function", "Log.append", "Log.read"),
        touch("line", "Log.append", lines=[("core.log", 7)]),
    ]
    assert in_order_for(MUTANT, touches) == ["line", "function", "elsewhere"]


def test_attempts_that_differ_from_earlier_ones_come_first():
    touches = [
        touch("large", "Log.append", "a", "b"),
        touch("alike", "Log.append", "a"),
        touch("unlike", "Log.append", "c"),
        touch("slow", "Log.append", "d", seconds=9.0),
    ]
    assert in_order_for(MUTANT, touches) == ["large", "unlike", "slow", "alike"]


def test_an_attempt_records_its_functions_and_the_lines_of_mutants():
    module = "reference_broker.core.quorum.quorum_state"
    wanted = [Mutant(module, "QuorumState.can_grant_vote", line, "constant", "", "", 1) for line in range(1, 400)]
    (seen,) = measure(["0"], wanted)
    assert (module, "QuorumState.can_grant_vote") in seen.functions
    assert {where for where, _ in seen.lines} == {module}
    assert len(seen.lines) > 10
    assert seen.seconds > 0
