"""Each requirement holds on an honest broker and is violated by one that lies about it.

Goal: no check is vacuous. Method: the reference broker behind a proxy that breaks one promise (`lies`). Shrinking is
cut short, because its result is tested elsewhere.
"""

from pathlib import Path

import pytest

from conformance.check_context import CheckContext
from conformance.concurrent import requirements as concurrent_requirements
from conformance.engine import seed_of
from conformance.registry import REQUIREMENTS
from conformance.requirements.requirement import Requirement
from conformance.sequential import session
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from tests.conformance.liar import Liar
from tests.conformance.lies import LIES

BROKERS = {1: "broker", 3: "cluster"}
"""Fixture by number of nodes."""
SEQUENTIAL = [requirement for requirement in REQUIREMENTS if requirement.id in LIES]


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
def honest(requirement, request):
    return request.getfixturevalue(BROKERS[requirement.nodes_min])


@pytest.mark.parametrize("requirement", SEQUENTIAL, ids=lambda requirement: requirement.id)
def test_a_lie_about_it_is_a_violation(requirement, honest, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "EFFECT_TIMEOUT_S", 0.5)  # an effect that a lie prevents is not awaited for long
    planted = LIES[requirement.id]
    with Liar(honest, planted.lie, planted.manners) as liar:
        finding = check(requirement, liar, tmp_path)
    assert finding.verdict is Verdict.VIOLATION, finding.reason
    assert not finding.flaky
    assert finding.reason
    assert "SCRIPT = Script(" in finding.program


@pytest.mark.parametrize("requirement", SEQUENTIAL, ids=lambda requirement: requirement.id)
def test_an_honest_broker_holds_it(requirement, honest, tmp_path):
    finding = check(requirement, honest, tmp_path)
    assert finding.verdict is Verdict.OK, f"{finding.reason}\n{finding.program}"
    assert finding.scripts > 0


def test_every_requirement_has_a_lie():
    """The requirements of `concurrent/` have their own table of lies in the tests of that folder."""
    concurrent = {requirement.id for requirement in concurrent_requirements.REQUIREMENTS}
    assert LIES.keys() == {requirement.id for requirement in REQUIREMENTS} - concurrent
