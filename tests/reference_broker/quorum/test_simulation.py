"""The quorum under faults: no invariant is violated, and after healing all nodes agree within a bound.

A failing test prints its scenario. `simulate(Scenario.generate(SEED))` runs it again with the same events; a scenario
that Hypothesis has shrunk is printed completely and can be pasted.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference_broker.quorum.simulation.scenario import FAULTY_MS, Fault, FaultKind, Scenario
from tests.reference_broker.quorum.simulation.simulation import simulate

faults = st.builds(
    Fault,
    at_ms=st.integers(0, FAULTY_MS // 3),
    kind=st.sampled_from(FaultKind),
    node=st.integers(0, 4),
    for_ms=st.sampled_from((0, 30, 200, 1000)),
)
scenarios = st.builds(
    Scenario,
    seed=st.integers(0, 1000),
    voters=st.sampled_from((3, 1, 5)),
    observers=st.integers(0, 1),
    faults=st.lists(faults, max_size=25).map(tuple),
    drop=st.sampled_from((0.0, 0.1)),
    slow=st.sampled_from((0.0, 0.1)),
    jitter_ms=st.sampled_from((1000, 5)),
    crashes_after_vote=st.sampled_from((0.0, 0.5)),
    faulty_ms=st.just(FAULTY_MS // 3),
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "generate",
    [
        Scenario.generate,
        Scenario.generate_storm,
        Scenario.generate_split_votes,
        Scenario.generate_duels,
        Scenario.generate_silences,
        Scenario.generate_power_cuts,
        Scenario.generate_installations,
    ],
)
def test_generated_scenarios(generate, seed):
    simulation = simulate(generate(seed))
    assert simulation.elections
    assert simulation.invariants.high_watermark > 3


@settings(max_examples=20)
@given(scenarios)
def test_any_scenario(scenario):
    simulate(scenario)


def test_same_seed_gives_the_same_run():
    one, other = simulate(Scenario.generate(5)), simulate(Scenario.generate(5))
    assert one.events == other.events
    assert one.invariants.committed == other.invariants.committed
    assert [dict(host.disk.files) for host in one.hosts] == [dict(host.disk.files) for host in other.hosts]
