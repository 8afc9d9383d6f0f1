"""The simulation sees: every known mistake, seeded into the quorum, violates an invariant in some scenario."""

from itertools import chain

import pytest

from reference_broker.core.log.errors import OffsetOutOfRangeError
from tests.reference_broker.quorum.simulation.defects import DEFECTS, Defect
from tests.reference_broker.quorum.simulation.invariants import InvariantViolation
from tests.reference_broker.quorum.simulation.scenario import Scenario
from tests.reference_broker.quorum.simulation.simulation import simulate

SEEDS = range(105, 165)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_seeded_mistake_is_caught(defect: Defect):
    draws = Scenario.draw_power_cuts, Scenario.draw_split_votes, Scenario.draw
    scenarios = chain.from_iterable((draw(seed) for draw in draws) for seed in SEEDS)
    with defect.seeded():
        assert any(is_caught(scenario) for scenario in scenarios)


def is_caught(scenario: Scenario) -> bool:
    """By an invariant, or by the log itself, which is asked for what it cannot have."""
    try:
        simulate(scenario)
    except (InvariantViolation, OffsetOutOfRangeError):
        return True
    return False
