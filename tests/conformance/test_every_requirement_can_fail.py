"""Each sequential requirement holds on a correct broker, and is violated behind a tampering proxy.

Goal: no check is vacuous. Method: the reference broker behind a proxy whose tampering violates the requirement
(`tamperings.py`). Shrinking has little time, because other tests check its result.
"""

from pathlib import Path

import pytest

from conformance.check_context import CheckContext
from conformance.concurrent import requirements as concurrent_requirements
from conformance.engine import seed_of
from conformance.registry import REQUIREMENTS
from conformance.requirements.requirement import Requirement
from conformance.sequential import timeouts
from fixtures.clients.messages import api_name
from fixtures.targets import bootstrap
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Capability
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import TamperingProxy
from tests.conformance.tamperings import NOT_ON_REFERENCE, TAMPERINGS

pytestmark = pytest.mark.sampled(6)

BROKERS = {1: "broker", 3: "cluster"}
"""Name of the fixture for each number of nodes."""
SEQUENTIAL = [requirement for requirement in REQUIREMENTS if requirement.id in TAMPERINGS]

ON_EXISTING_CLUSTERS = [
    requirement
    for requirement in SEQUENTIAL
    if not requirement.family and Capability.PROCESS_CONTROL not in requirement.needs
]


def check(requirement: Requirement, target: object, run_dir: Path) -> Finding:
    context = CheckContext(
        requirement_id=requirement.id,
        targets=[target],
        seed=seed_of(1, requirement.id),
        scripts_max=12,
        shrink_seconds=0.1,
        history_dirs={target.name: run_dir},
        script_ran=lambda target, done, planned: None,
    )
    return requirement.check(context)[target.name]


@pytest.fixture
def target(requirement, request):
    return request.getfixturevalue(BROKERS[requirement.nodes_min])


@pytest.mark.parametrize("requirement", SEQUENTIAL, ids=lambda each: each.id)
def test_a_tampering_is_a_violation(requirement, target, tmp_path, monkeypatch):
    monkeypatch.setattr(timeouts, "FIRST_CHECK_MS", 0)  # the reference broker checks its logs without an initial delay
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.5)  # a tampering may prevent an effect
    planted = TAMPERINGS[requirement.id]
    with TamperingProxy(target, planted.tampering, planted.frame_defects) as proxy:
        finding = check(requirement, proxy, tmp_path)
    assert finding.verdict is Verdict.VIOLATION, finding.reason
    assert not finding.flaky
    assert finding.reason
    assert "SCRIPT = Script(" in finding.program


@pytest.mark.toxiproxy
@pytest.mark.sampled(24)
@pytest.mark.parametrize("requirement", ON_EXISTING_CLUSTERS, ids=lambda each: each.id)
def test_a_tampering_behind_the_mesh_of_an_existing_cluster_is_a_violation(requirement, target, tmp_path, monkeypatch):
    """The mesh alters only addresses and the range of versions, and forwards invalid bytes. It hides no violation."""
    monkeypatch.setattr(timeouts, "FIRST_CHECK_MS", 0)  # the reference broker checks its logs without an initial delay
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.5)
    monkeypatch.setattr(bootstrap, "await_ready", lambda *_: None)  # the tampered cluster may never be ready
    planted = TAMPERINGS[requirement.id]
    with (
        TamperingProxy(target, planted.tampering, planted.frame_defects) as proxy,
        parse_target(f"bootstrap:{proxy.bootstrap_servers}", mesh=True) as existing,
    ):
        finding = check(requirement, existing, tmp_path)
        interference = existing.interference
    assert finding.verdict is Verdict.VIOLATION, finding.reason
    assert interference == ""


@pytest.mark.parametrize("requirement", SEQUENTIAL, ids=lambda each: each.id)
def test_a_correct_broker_has_no_violation(requirement, target, tmp_path):
    finding = check(requirement, target, tmp_path)
    if requirement.id in NOT_ON_REFERENCE:
        assert finding.verdict is Verdict.NOT_APPLICABLE
        missing = NOT_ON_REFERENCE[requirement.id]
        assert f"does not offer {missing if isinstance(missing, str) else api_name(missing)}" in finding.reason
        return
    assert finding.verdict is Verdict.OK, f"{finding.reason}\n{finding.program}"
    assert finding.scripts > 0


def test_every_requirement_has_a_tampering():
    """The requirements of `concurrent/` have a separate table in the tests of that folder."""
    concurrent = {requirement.id for requirement in concurrent_requirements.REQUIREMENTS}
    assert TAMPERINGS.keys() == {requirement.id for requirement in REQUIREMENTS} - concurrent
