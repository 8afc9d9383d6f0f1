"""Budgets of the generic checker: a search ends soon after one is used up, and its verdict is unknown."""

import math
import random
import tracemalloc
from dataclasses import dataclass

import pytest

from linearizability.judgement import Verdict
from linearizability.model import Model, Rejected
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.fifo_queue import fifo_queue
from linearizability.models.key_value import key_value
from linearizability.operation import Operation
from linearizability.search.competition import EngineName
from linearizability.verify import BOTH, Budget, check

FRONTIER, DEPTH_FIRST = (EngineName.FRONTIER,), (EngineName.DEPTH_FIRST,)


def hard_queue(size: int = 24) -> list[Operation]:
    """Return concurrent operations. One output is impossible, so that a search has to try every order."""
    enqueues = [("enqueue", number) for number in range(size)]
    history = [
        Operation(op_id=op_id, input=given, output=None, invoke_ns=0, complete_ns=100)
        for op_id, given in enumerate(enqueues)
    ]
    return [*history, Operation(op_id="never", input=("dequeue",), output=-1, invoke_ns=0, complete_ns=99)]


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST, BOTH])
def test_search_ends_at_the_budget_of_steps(engines):
    outcome = check(hard_queue(), fifo_queue(), Budget(steps=5_000, time_s=None), engines=engines).outcomes[0]
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.reason == "the budget of 5000 steps was used up"
    assert 5_000 <= outcome.steps <= 5_000 + 50


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST, BOTH])
def test_search_ends_at_the_budget_of_time(engines):
    """The clock advances ten milliseconds with each reading."""
    readings = iter(range(0, 10**15, 10_000_000))
    outcome = check(
        hard_queue(), fifo_queue(), Budget(time_s=0.2, memory_mb=None), engines=engines, clock=readings.__next__
    ).outcomes[0]
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.reason == "the time budget of 0.2 s was used up"
    assert 200_000_000 <= next(readings) <= 230_000_000


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST])
def test_search_ends_at_the_budget_of_memory(engines):
    """The search estimates its own memory (`peak_bytes`). The estimate is near the memory that Python allocated."""
    tracemalloc.start()
    try:
        outcome = check(hard_queue(), fifo_queue(), Budget(memory_mb=16, time_s=None), engines=engines).outcomes[0]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.reason == "the memory budget of 16 MB was used up"
    assert 16 << 20 <= outcome.peak_bytes < 64 << 20
    assert peak_bytes / 2.5 < outcome.peak_bytes < peak_bytes * 2.5


@dataclass(frozen=True)
class Held:
    """State of a model, with a tuple of texts."""

    texts: tuple[str, ...]


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST])
@pytest.mark.parametrize("box", [lambda texts: texts, Held, lambda texts: Held(texts) if len(texts) % 2 else texts])
def test_memory_of_objects_referenced_only_by_states_counts(engines, box):
    """A state is a tuple of texts or an object with such a tuple, and a step adds a text of 50 kB.

    A text that several states share counts once.
    """

    def step(state, given, output):
        texts = state.texts if isinstance(state, Held) else state
        return box((*texts, str(given) + "x" * 50_000)) if given else Rejected("no")

    history = [
        Operation(op_id=number, input=number, output=None, invoke_ns=0, complete_ns=100 + number)
        for number in range(24)
    ]
    model = Model(name="texts", init=tuple, step=step)
    tracemalloc.start()
    try:
        outcome = check(history, model, Budget(memory_mb=30, time_s=None, steps=10**6), engines=engines).outcomes[0]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.reason == "the memory budget of 30 MB was used up"
    assert peak_bytes / 2.5 < outcome.peak_bytes < peak_bytes * 2.5


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST])
def test_memory_of_sets_of_states_that_double_with_each_step_is_bounded(engines):
    def step(state, given, output):
        return ((*state, str(given) + "x" * 50_000), state) if given else ()

    history = [Operation(op_id=n, input=n + 1, output=None, invoke_ns=n, complete_ns=100 + n) for n in range(24)]
    history.append(Operation(op_id="never", input=0, output=None, invoke_ns=200, complete_ns=201))
    model = Model(name="doubling", init=lambda: ((),), step=step, nondeterministic=True)
    tracemalloc.start()
    try:
        outcome = check(history, model, Budget(memory_mb=10, time_s=None), engines=engines).outcomes[0]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.reason == "the memory budget of 10 MB was used up"
    assert peak_bytes < 80 << 20


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST])
def test_objects_of_the_history_do_not_count(engines):
    """The states refer to 100 MB of texts. These belong to the history, not to the search."""
    texts = [str(number) + "x" * 5_000_000 for number in range(20)]
    history = [
        Operation(op_id=number, input=("enqueue", text), output=None, invoke_ns=9 * number, complete_ns=9 * number + 8)
        for number, text in enumerate(texts)
    ]
    outcome = check(history, fifo_queue(), Budget(memory_mb=4, time_s=None), engines=engines).outcomes[0]
    assert outcome.verdict is Verdict.OK
    assert outcome.peak_bytes < 1 << 20


@pytest.mark.parametrize("limit", ["steps", "time_s", "memory_mb"])
@pytest.mark.parametrize("value", [math.nan, -1, "7"])
def test_invalid_limit_is_rejected(limit, value):
    with pytest.raises(ValueError, match=rf"the budget's {limit} is .*, neither None nor a number of at least 0"):
        Budget(**{limit: value})


@pytest.mark.parametrize("value", [math.inf, 1e300])
def test_infinite_budget_is_no_limit(value):
    history = [Operation(op_id=1, input=("get", "a"), output="?", invoke_ns=0, complete_ns=1)]
    budget = Budget(steps=value, time_s=value, memory_mb=value)
    assert check(history, key_value(), budget).verdict is Verdict.VIOLATION


def test_memory_budget_may_be_a_fraction_of_a_megabyte():
    outcome = check(hard_queue(), fifo_queue(), Budget(memory_mb=0.5, time_s=None)).outcomes[0]
    assert outcome.reason == "the memory budget of 0.5 MB was used up"


def test_both_engines_together_end_at_the_budget_of_memory():
    outcome = check(hard_queue(9), fifo_queue(), Budget(memory_mb=1, time_s=None)).outcomes[0]
    assert (outcome.verdict, outcome.reason) == (Verdict.UNKNOWN, "the memory budget of 1 MB was used up")


def test_easy_subhistories_are_decided_although_another_one_is_hard():
    rng = random.Random(4)
    history = []
    for number in range(20):
        history.append(
            Operation(op_id=number, input=("append", "hard", str(number)), output=None, invoke_ns=0, complete_ns=100)
        )
        easy = ("append", f"easy {number}", "x")
        history.append(Operation(op_id=f"a{number}", input=easy, output=None, invoke_ns=0, complete_ns=1))
        output = "x" if number != 13 else "y"
        get = ("get", f"easy {number}")
        history.append(Operation(op_id=f"g{number}", input=get, output=output, invoke_ns=2, complete_ns=3))
    history.append(Operation(op_id="get", input=("get", "hard"), output="?", invoke_ns=0, complete_ns=99))
    rng.shuffle(history)
    verification = check(history, key_value(), Budget(steps=20_000, time_s=None))
    found = {outcome.key: outcome.verdict for outcome in verification.outcomes}
    assert found.pop("hard") is Verdict.UNKNOWN
    assert found.pop("easy 13") is Verdict.VIOLATION
    assert set(found.values()) == {Verdict.OK}
    assert len(found) == 19
    assert verification.verdict is Verdict.VIOLATION


def test_check_may_end_at_the_first_violation():
    history = [
        Operation(op_id=key, input=("get", key), output="?", invoke_ns=0, complete_ns=1) for key in ("a", "b", "c")
    ]
    verification = check(history, key_value(), first_violation_only=True)
    assert [outcome.verdict for outcome in verification.outcomes] == [
        Verdict.VIOLATION,
        Verdict.UNKNOWN,
        Verdict.UNKNOWN,
    ]
    assert verification.outcomes[1].reason == "another subhistory has a violation, and the check ended there"


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST])
def test_memory_does_not_grow_with_the_length(engines):
    """The history has twenty thousand operations, one after the other."""
    history = []
    for number in range(20_000):
        given = ("write", number % 7) if number % 2 else ("cas", (number - 1) % 7, 3)
        history.append(
            Operation(
                op_id=number,
                input=given,
                output=None if number % 2 else number > 0,
                invoke_ns=2 * number,
                complete_ns=2 * number + 1,
            )
        )
    outcome = check(history, compare_and_set(3), Budget(time_s=None), engines=engines).outcomes[0]
    assert outcome.verdict is not Verdict.UNKNOWN
    assert outcome.peak_bytes < 12 << 20
