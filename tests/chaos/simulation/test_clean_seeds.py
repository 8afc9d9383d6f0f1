"""The reference broker without a defect violates nothing: a thousand seeds each time, ten thousand others at night."""

import os

import pytest

from chaos.simulation.campaign import Plan, run_campaign
from chaos.simulation.campaign_events import SeedRan, Shrunk
from chaos.simulation.counterexample import program_of
from reference_broker.simulation.coverage import STATES

RARE = {
    "error:produce:NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "error:alter_partition:INELIGIBLE_REPLICA",
    "error:alter_partition:INVALID_UPDATE_VERSION",
}
"""What a thousand seeds need not reach.

The first cannot be: while the ISR is below `min.insync.replicas` the high watermark stands still (as Kafka's does since
KAFKA-15583), and once it has passed a batch, that is acknowledged in the same event. The others are races that few come
to.
"""


def run_clean(first, last):
    """Run seeds, all of them; the coverage of all."""
    violated, programs, coverage = [], [], {}
    workers = len(os.sched_getaffinity(0))
    for event in run_campaign(Plan(first, last, workers=workers, failures_max=None)):
        match event:
            case SeedRan():
                violated += [f"seed {event.seed}: {event.name}: {event.text}"] if event.name else []
                for name, count in event.coverage.items():
                    coverage[name] = coverage.get(name, 0) + count
            case Shrunk():
                programs.append(program_of(event.counterexample))
    assert not violated, "\n".join((*violated, *programs))
    return coverage


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_thousand_seeds_violate_nothing():
    coverage = run_clean(0, 999)
    assert {state for state in STATES if not coverage.get(state)} <= RARE


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_ten_thousand_seeds_violate_nothing():
    run_clean(1_000, 10_999)
