"""Sensitivity of the quorum simulation: every seeded defect violates an invariant in several scenarios."""

from itertools import islice

import pytest

from chaos.defects.defect import Defect
from reference_broker.core.log.errors import OffsetOutOfRangeError
from tests.reference_broker.quorum.simulation.defects import SCENARIOS
from tests.reference_broker.quorum.simulation.invariants import InvariantViolation
from tests.reference_broker.quorum.simulation.scenario import Scenario
from tests.reference_broker.quorum.simulation.simulation import simulate

SEEDS = range(80)
DETECTIONS = 3
"""Required number of detections.

If a defect is detected in a fifth of its scenarios, the probability of fewer detections is below 1 in 100,000.
"""


@pytest.mark.parametrize("defect", SCENARIOS, ids=lambda defect: defect.name)
def test_seeded_defect_is_detected(defect: Defect):
    with defect.seeded():
        detected = list(islice((seed for seed in SEEDS if is_detected(SCENARIOS[defect](seed))), DETECTIONS))
    assert len(detected) == DETECTIONS


def is_detected(scenario: Scenario) -> bool:
    """Whether an invariant is violated, or the log is read outside its bounds."""
    try:
        simulate(scenario)
    except (InvariantViolation, OffsetOutOfRangeError):
        return True
    return False
