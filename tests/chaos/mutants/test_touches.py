"""In which order attempts are made against a mutant."""

from chaos.mutants.mutations import Mutant
from chaos.mutants.touches import Touch, in_order_for, measure

MUTANT = Mutant("core.log", "Log.append", 7, "constant", "1", "2", 1)


def touch(name, *functions, lines=(), seconds=1.0):
    return Touch(name, frozenset(("core.log", each) for each in functions), frozenset(lines), seconds)


def test_what_runs_the_line_comes_first_then_what_runs_the_function():
    touches = [
        touch("elsewhere", "Log.read", "Log.flush"),
        touch("function", "Log.append", "Log.read"),
        touch("line", "Log.append", lines=[("core.log", 7)]),
    ]
    assert in_order_for(MUTANT, touches) == ["line", "function", "elsewhere"]


def test_what_is_unlike_those_before_comes_before_what_is_alike():
    touches = [
        touch("large", "Log.append", "a", "b"),
        touch("alike", "Log.append", "a"),
        touch("unlike", "Log.append", "c"),
        touch("slow", "Log.append", "d", seconds=9.0),
    ]
    assert in_order_for(MUTANT, touches) == ["large", "unlike", "slow", "alike"]


def test_an_attempt_is_seen_to_run_its_functions_and_the_lines_of_mutants():
    module = "reference_broker.core.quorum.quorum_state"
    wanted = [Mutant(module, "QuorumState.can_grant_vote", line, "constant", "", "", 1) for line in range(1, 400)]
    (seen,) = measure(["0"], wanted)
    assert (module, "QuorumState.can_grant_vote") in seen.functions
    assert {where for where, _ in seen.lines} == {module}
    assert len(seen.lines) > 10
    assert seen.seconds > 0
