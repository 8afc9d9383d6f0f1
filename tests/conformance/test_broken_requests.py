"""`negotiation/broken-requests-are-survived` shrinks its script to the one request that crashes the broker.

Method: a reference broker that ends when it receives DescribeLogDirs (`tests/conformance/fuzz/broken_broker.py`). If
the broker does not respond, `revive` restarts it, as the conformance engine does.
"""

import pytest

from conformance.check_context import CheckContext
from conformance.liveness import responds
from conformance.registry import REQUIREMENTS
from conformance.sequential import timeouts
from fixtures.targets.cluster import Cluster
from fixtures.targets.reference import Reference
from linearizability.judgement import Verdict

(REQUIREMENT,) = (each for each in REQUIREMENTS if each.id == "negotiation/broken-requests-are-survived")


def revive(target):
    if not responds(target, timeout_s=1.0):
        target.stop()
        target.start()
    return True


@pytest.mark.slow
def test_the_request_that_ends_a_broker_is_reported_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(timeouts, "READY_TIMEOUT_S", 2.0)  # the ended node never responds
    recipe = Reference(program=("tests.conformance.fuzz.broken_broker", "node-ended"))
    with Cluster(recipe, 1, work_dir=tmp_path / "cluster", mesh=False) as target:
        context = CheckContext(
            requirement_id=REQUIREMENT.id,
            targets=[target],
            seed=1,
            scripts_max=20,
            shrink_seconds=0.1,
            history_dirs={target.name: tmp_path},
            script_ran=lambda target, done, planned: None,
            revive=revive,
        )
        finding = REQUIREMENT.check(context)[target.name]
    assert finding.verdict is Verdict.VIOLATION
    assert "the broker went down, each time that the script ran" in finding.reason
    assert "no response on a new connection after DescribeLogDirs v" in finding.reason
    assert finding.program.count("BrokenRequest(") == 1


def test_only_clusters_that_the_run_starts_get_broken_requests():
    assert {str(each) for each in REQUIREMENT.needs} == {"process-control"}
