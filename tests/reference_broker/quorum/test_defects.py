"""The simulation sees: every known mistake, seeded into the quorum, violates an invariant in several scenarios."""

from itertools import islice

import pytest

from chaos.defects.defect import Defect
from reference_broker.core.log.errors import OffsetOutOfRangeError
from tests.reference_broker.quorum.simulation.defects import SCENARIOS
from tests.reference_broker.quorum.simulation.invariants import InvariantViolation
from tests.reference_broker.quorum.simulation.scenario import Scenario
from tests.reference_broker.quorum.simulation.simulation import simulate

SEEDS = range(80)
ENOUGH = 3
"""Of a defect that shows in a fifth of its scenarios, so many seeds show fewer than this once in a hundred thousand."""


@pytest.mark.parametrize("defect", SCENARIOS, ids=lambda defect: defect.name)
def test_a_seeded_mistake_is_caught(defect: Defect):
    with defect.seeded():
        caught = list(islice((seed for seed in SEEDS if is_caught(SCENARIOS[defect](seed))), ENOUGH))
    assert len(caught) == ENOUGH


def is_caught(scenario: Scenario) -> bool:
    """By an invariant, or by the log itself, which is asked for what it cannot have."""
    try:
        simulate(scenario)
    except (InvariantViolation, OffsetOutOfRangeError):
        return True
    return False
