"""Apache Kafka and the reference broker satisfy the sequential requirements on three nodes, with the same responses.

Differences that are only cosmetic are permitted. CI compares the responses for a sample of the requirements. Another
step of CI, `pytest -m conformance`, checks every requirement on both targets.
"""

import pytest

from conformance.engine import run_requirements
from conformance.events import RequirementJudged, RunEnded
from conformance.profiles import Profile
from conformance.registry import REQUIREMENTS
from conformance.targets import FREQUENT_CLEANUP
from fixtures.targets.catalogue import parse_target
from tests.conformance.tamperings import NOT_ON_REFERENCE, TAMPERINGS
from tests.sampling import part

pytestmark = pytest.mark.java

KNOWN_DIFFERENCES = {"log_append_time"}
"""Fields that may differ: Kafka returns the newest timestamp of the batch for a duplicate, even with CreateTime."""

DIFFERENT = {
    "admin/too-many-partitions-are-rejected": "Apache Kafka returns UNKNOWN_SERVER_ERROR in place of POLICY_VIOLATION",
    "configs/resources-are-listed": "the reference broker has no client metrics",
}
"""Requirements that both satisfy with different errors, and why."""

SEQUENTIAL = [requirement for requirement in REQUIREMENTS if requirement.id in TAMPERINGS]
SAMPLE = 15
"""Number of requirements."""


def test_a_sample_of_the_requirements_side_by_side(tmp_path):
    assert_alike(part(SEQUENTIAL, SAMPLE), tmp_path)


@pytest.mark.nightly
def test_every_requirement_side_by_side(tmp_path):
    assert_alike(SEQUENTIAL, tmp_path)


def is_not_on_reference(finding):
    return finding.target == "reference" and finding.requirement in NOT_ON_REFERENCE and "not offer" in finding.reason


def assert_alike(requirements, tmp_path):
    targets = [
        parse_target(name, nodes=3, properties=FREQUENT_CLEANUP, work_dir=tmp_path / name.partition(":")[0], mesh=False)
        for name in ("apache-kafka:4.3.1", "reference")
    ]
    few = Profile("few", scripts_max=3, shrink_seconds=5.0)
    events = list(run_requirements(targets, requirements, seed=4, profile=few, run_dir=tmp_path / "run"))
    judged = [event.finding for event in events if isinstance(event, RequirementJudged)]
    assert isinstance(events[-1], RunEnded)
    wrong = [each for each in judged if each.verdict != "ok" and not is_not_on_reference(each)]
    assert [(each.requirement, each.target, each.reason) for each in wrong] == []
    assert len(judged) == 2 * len(requirements)
    differing = {
        difference.here.partition(" ")[0]
        for finding in judged
        for difference in finding.differences
        if difference.severity != "wire-cosmetic" and finding.requirement not in DIFFERENT
    }
    assert differing <= KNOWN_DIFFERENCES
