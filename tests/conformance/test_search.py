"""Scripts that are generated from a seed, and shrinking of a script that violates a requirement."""

import pytest
from hypothesis import strategies as st

from conformance.search import smallest, try_scripts
from conformance.sequential.steps import Batch, CreateTopic, Fetch, Produce, Record, Script
from conformance.sequential.strategies import many, produces, script

SCRIPTS = script(CreateTopic(), many(produces(), at_most=6), many(st.integers(0, 50).map(Fetch), at_most=4))


def tried(seed: int, scripts_max: int = 20) -> list[Script]:
    found = []
    try_scripts(SCRIPTS, seed_value=seed, scripts_max=scripts_max, attempt=found.append)
    return found


def reads_far(value: Script) -> bool:
    return any(isinstance(step, Fetch) and step.offset >= 10 for step in value.steps)


def shrunk(first: Script, violates=reads_far, seed: int = 3, budget: int = 10_000) -> tuple[Script, list[Script]]:
    judged: list[Script] = []

    def judge(value: Script) -> bool:
        judged.append(value)
        return violates(value)

    small = smallest(
        SCRIPTS,
        seed_value=seed,
        scripts_max=20,
        first=first,
        passed=(),
        violates=judge,
        time_is_up=lambda: len(judged) >= budget,
    )
    return small, judged


def test_the_same_seed_gives_the_same_scripts():
    assert tried(5) == tried(5)
    assert tried(5) != tried(6)


def test_at_most_the_given_number_of_scripts_is_tried():
    assert 0 < len(tried(1, scripts_max=7)) <= 7


def test_an_exception_of_an_attempt_ends_the_search():
    calls = []

    def attempt(value: Script) -> None:
        calls.append(value)
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        try_scripts(SCRIPTS, seed_value=1, scripts_max=9, attempt=attempt)
    assert len(calls) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_script_is_minimal(seed):
    first = next(value for value in tried(seed, 60) if reads_far(value))
    small, _ = shrunk(first, seed=seed)
    assert small == Script(
        (CreateTopic(), Produce((Batch((Record(None, timestamp_ms=1_700_000_000_000),)),)), Fetch(10))
    )


def test_no_script_is_sent_twice():
    _, judged = shrunk(next(value for value in tried(3, 60) if reads_far(value)))
    assert len(judged) == len(set(judged))


@pytest.mark.parametrize("budget", [0, 1, 10])
def test_shrinking_ends_when_time_is_up_with_a_script_that_violates(budget):
    first = next(value for value in tried(3, 60) if reads_far(value))
    small, judged = shrunk(first, budget=budget)
    assert reads_far(small)
    assert len(judged) <= budget


def test_a_violation_that_is_not_repeated_leaves_the_first_script():
    first = next(value for value in tried(3, 60) if reads_far(value))
    small, _ = shrunk(first, violates=lambda value: False)
    assert small == first
