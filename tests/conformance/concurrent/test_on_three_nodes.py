"""What is required of a cluster in which nodes and links fail: Apache Kafka and the reference cluster both hold it.

One script of each story, about a minute on the reference cluster and two on Apache Kafka.
"""

import pytest

from conformance.concurrent.fault_requirements import PROMISES
from conformance.engine import run_requirements
from conformance.events import RequirementJudged, RunEnded
from conformance.profiles import PROFILES
from fixtures.targets.catalogue import parse_target

pytestmark = [pytest.mark.toxiproxy, pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 5


@pytest.mark.parametrize("name", ["reference", pytest.param("apache-kafka:4.3.1", marks=pytest.mark.java)])
def test_every_requirement_of_broken_clusters_is_held(name, tmp_path):
    target = parse_target(name, nodes=3, work_dir=tmp_path / "target", mesh=True)
    requirements = [promise.requirement() for promise in PROMISES]
    run = run_requirements([target], requirements, seed=SEED, profile=PROFILES["ci"], run_dir=tmp_path / "run")
    events = list(run)
    judged = [event for event in events if isinstance(event, RequirementJudged)]
    assert isinstance(events[-1], RunEnded)
    assert [(event.requirement, event.verdict, event.reason) for event in judged if event.verdict != "ok"] == []
    assert len(judged) == len(PROMISES)
