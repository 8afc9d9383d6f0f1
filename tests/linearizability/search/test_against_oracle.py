"""Engines compared with the oracle on small random histories of every model."""

import random

import pytest

from linearizability.judgement import Verdict
from linearizability.model import Model
from linearizability.operation import Operation
from linearizability.search.competition import EngineName
from linearizability.verify import BOTH, Budget, check
from tests.linearizability.many import parametrize_count
from tests.linearizability.search.histories import PLANS, as_events, random_history
from tests.linearizability.search.oracle import earliest_blocked, is_linearizable

FRONTIER, DEPTH_FIRST = (EngineName.FRONTIER,), (EngineName.DEPTH_FIRST,)
NO_LIMIT = Budget(time_s=None, memory_mb=None)


def expected(history: list[Operation], model: Model) -> Verdict:
    return Verdict.OK if is_linearizable_for_each_key(history, model) else Verdict.VIOLATION


def is_linearizable_for_each_key(history: list[Operation], model: Model) -> bool:
    key = model.partition or (lambda given: None)
    return all(
        is_linearizable([op for op in history if key(op.input) == one], model)
        for one in {key(op.input) for op in history}
    )


def compare(plan: str, seeds: range) -> set[Verdict]:
    make = PLANS[plan][0]
    seen = set()
    for seed in seeds:
        rng = random.Random(f"{plan} {seed}")
        model, history = make(), random_history(plan, rng, rng.randrange(1, 7))
        verdict = expected(history, model)
        seen.add(verdict)
        for engines in (FRONTIER, DEPTH_FIRST, BOTH):
            found = check(history, model, NO_LIMIT, engines=engines).verdict
            assert found is verdict, f"{plan}, seed {seed}, {engines}: {found}, the oracle returns {verdict}"
        assert check(as_events(history), model, NO_LIMIT).verdict is verdict, f"{plan}, seed {seed}, as events"
    return seen


@parametrize_count(5_000, nightly=200_000)
@pytest.mark.parametrize("plan", PLANS)
def test_verdicts_for_every_model_equal_the_oracle(plan: str, count: int):
    assert compare(plan, range(count // len(PLANS))) == {Verdict.OK, Verdict.VIOLATION}


@pytest.mark.parametrize("engines", [FRONTIER, DEPTH_FIRST, BOTH])
@pytest.mark.parametrize("plan", ["compare-and-set", "queue", "coin"])
def test_blocked_operation_is_the_earliest(plan: str, engines: tuple[EngineName, ...]):
    violations = 0
    for seed in range(150):
        rng = random.Random(f"blocked {plan} {seed}")
        model, history = PLANS[plan][0](), random_history(plan, rng, rng.randrange(1, 6))
        for outcome in check(history, model, NO_LIMIT, engines=engines).outcomes:
            if outcome.verdict is Verdict.VIOLATION:
                violations += 1
                assert outcome.blocked.op_id in earliest_blocked(history, model), f"{plan}, seed {seed}"
    assert violations > 10
