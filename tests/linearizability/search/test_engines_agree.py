"""Engines compared with each other on longer histories: the same verdict and the same blocked operation."""

import random

import pytest

from linearizability.search.competition import EngineName
from linearizability.verify import BOTH, Budget, check
from tests.linearizability.many import parametrize_count
from tests.linearizability.search.histories import PLANS, random_history

BUDGET = Budget(time_s=None, memory_mb=None)


def compare(plan: str, seeds: range) -> set[str]:
    seen = set()
    for seed in seeds:
        rng = random.Random(f"engines {plan} {seed}")
        model, history = PLANS[plan][0](), random_history(plan, rng, rng.randrange(6, 14))
        found = [
            [
                (outcome.key, outcome.verdict, outcome.blocked)
                for outcome in check(history, model, BUDGET, engines=engines).outcomes
            ]
            for engines in ((EngineName.FRONTIER,), (EngineName.DEPTH_FIRST,), BOTH)
        ]
        assert found[0] == found[1] == found[2], f"{plan}, seed {seed}"
        seen.update(str(verdict) for _, verdict, _ in found[0])
    return seen


@parametrize_count(1_200, nightly=100_000)
@pytest.mark.parametrize("plan", PLANS)
def test_engines_agree_on_longer_histories(plan: str, count: int):
    assert compare(plan, range(count // len(PLANS))) == {"ok", "violation"}
