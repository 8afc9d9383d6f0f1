"""Explanations of violations: the shrunk history is a minimal violation, and the partial linearizations are valid."""

import random
from itertools import combinations

import pytest

from linearizability.judgement import Verdict
from linearizability.models.register import register
from linearizability.operation import Operation, Outcome
from linearizability.verify import Budget, check
from tests.linearizability.search.histories import PLANS, random_history

BUDGET = Budget(time_s=None)


def violations(plan: str, count: int, size: int):
    seed, found = 0, 0
    while found < count:
        seed += 1
        rng = random.Random(f"explain {plan} {seed}")
        model, history = PLANS[plan][0](), random_history(plan, rng, size)
        verification = check(history, model, BUDGET)
        for outcome in verification.outcomes:
            if outcome.verdict is Verdict.VIOLATION:
                found += 1
                yield f"{plan}, seed {seed}", model, history, outcome, verification.explain(outcome)


@pytest.mark.parametrize("plan", PLANS)
def test_shrunk_histories_fail_and_need_each_operation(plan: str):
    """Together with any other operations, the shrunk history is not linearizable.

    If one of its own operations may be left out, it is linearizable together with some of the others.
    """
    for name, model, history, outcome, explanation in violations(plan, 12, 7):
        key = model.partition or (lambda given: None)
        own = [op for op in history if key(op.input) == outcome.key and op.outcome is not Outcome.FAIL]
        shrunk = list(explanation.shrunk)
        others = [op for op in own if op not in shrunk]
        assert explanation.minimal, name
        assert outcome.blocked in shrunk, name
        assert not explainable(shrunk, others, model), name
        for dropped in shrunk:
            rest = [op for op in shrunk if op != dropped]
            others_too = [op for op in [*others, dropped] if op.invoke_ns <= outcome.blocked.complete_ns]
            assert explainable(rest, others_too, model), f"{name}: {dropped.op_id} is not needed"


def explainable(needed: list[Operation], others: list[Operation], model) -> bool:
    """Whether the needed operations are linearizable together with none, some or all of the others."""
    return any(
        check([*needed, *some], model, BUDGET).verdict is Verdict.OK
        for count in range(len(others) + 1)
        for some in combinations(others, count)
    )


@pytest.mark.parametrize("plan", PLANS)
def test_partial_linearizations_are_valid_and_end_before_the_blocked_operation(plan: str):
    for name, model, _, outcome, explanation in violations(plan, 15, 10):
        assert explanation.partial_linearizations, name
        lengths = [len(path.operations) for path in explanation.partial_linearizations]
        assert lengths == sorted(lengths, reverse=True), name
        for path in explanation.partial_linearizations:
            assert outcome.blocked not in path.operations, name
            assert len({op.op_id for op in path.operations}) == len(path.operations), name
            states = set(model.first_states())
            for op in path.operations:
                pure = model.pure(op.input, op.output)
                states = {
                    after for state in states for after in model.next_states(state, op.input, op.output, pure=pure)
                }
            assert path.state in {model.describe_state(state) for state in states}, name
            for index, op in enumerate(path.operations):
                for later in path.operations[index + 1 :]:
                    ended_before = later.outcome is Outcome.OK and later.complete_ns < op.invoke_ns
                    assert not ended_before, f"{name}: {later.op_id} ended before {op.op_id} was invoked"


def test_stale_read_is_explained_among_many_operations():
    """The explanation contains only the stale read and the write that it missed."""
    history = []
    for number in range(40):
        history.append(
            Operation(
                op_id=f"w{number}",
                input=("write", number),
                output=None,
                invoke_ns=4 * number,
                complete_ns=4 * number + 1,
            )
        )
        history.append(
            Operation(
                op_id=f"r{number}", input=("read",), output=number, invoke_ns=4 * number + 2, complete_ns=4 * number + 3
            )
        )
    history[61] = Operation(op_id="stale", input=("read",), output=29, invoke_ns=122, complete_ns=123)
    verification = check(history, register(), BUDGET)
    explanation = verification.explain()
    assert explanation.blocked.op_id == "stale"
    assert explanation.minimal
    assert [op.op_id for op in explanation.shrunk] == ["w30", "stale"]
    assert [(path.state, len(path.operations)) for path in explanation.partial_linearizations] == [("30", 61)]
    assert "operation 'stale' cannot be placed: read() -> 29" in explanation.text()
    assert "in state 30, after 61 operations: the register holds another value" in explanation.text()


def test_valid_history_has_no_explanation():
    with pytest.raises(ValueError, match="no violation to explain"):
        check([], register()).explain()
