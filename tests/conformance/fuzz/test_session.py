"""Fuzzing sessions: a broken broker is detected, the request that breaks it is found, and a correct broker passes."""

import time

import pytest

from conformance.fuzz.finding import NotAFindingError, Symptom, load, save
from conformance.fuzz.health import REFERENCE_LIMITS, limits_for
from conformance.fuzz.probe import Sample
from conformance.fuzz.session import SessionPlan, run_session
from conformance.fuzz.shrinking import Replays
from fixtures.targets.catalogue import parse_target
from fixtures.targets.cluster import Cluster
from fixtures.targets.reference import Reference
from linearizability.judgement import Verdict
from tests.conformance.fuzz.broken_broker import FRAGILE_API
from tests.sampling import part


def broken_reference(fault, work_dir):
    recipe = Reference(program=("tests.conformance.fuzz.broken_broker", str(fault)))
    return Cluster(recipe, 3, work_dir=work_dir, mesh=False)


SYMPTOMS = [Symptom.NODE_ENDED, Symptom.LATE_RESPONSE, Symptom.MEMORY, Symptom.TRACEBACK]
TODAY = part(SYMPTOMS, 1)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "symptom",
    [pytest.param(each, marks=pytest.mark.slow if each in TODAY else pytest.mark.nightly) for each in SYMPTOMS],
)
def test_a_broken_broker_is_detected_and_the_request_is_found(symptom, tmp_path):
    plan = SessionPlan(seed=1, seconds=120, limits=REFERENCE_LIMITS)
    with broken_reference(symptom, tmp_path / "cluster") as target:
        report = run_session(target, tmp_path / "run", plan)
    (finding,) = report.progress.findings
    assert finding.symptom is symptom
    assert report.progress.seconds < plan.seconds
    replays = Replays(
        finding, lambda directory: broken_reference(symptom, directory), plan.limits, time.monotonic() + 120
    )
    smallest = replays.shrink()
    assert smallest.is_confirmed
    assert smallest.is_violation
    (request,) = smallest.requests
    assert int.from_bytes(request.data[4:6], "big") == FRAGILE_API

    save(tmp_path / "finding.json", smallest)
    loaded = load(tmp_path / "finding.json")
    assert (loaded.requests, loaded.symptom) == (smallest.requests, symptom)
    on_correct_cluster = Replays(
        loaded, lambda directory: parse_target("reference", 3, work_dir=directory, mesh=False), plan.limits, 0.0
    )
    assert on_correct_cluster.replay(loaded.requests) is None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_minute_of_requests_harms_no_node_and_no_record_of_the_reference_cluster(tmp_path):
    assert_unharmed("reference", tmp_path, seed=17, seconds=60)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", ["reference", pytest.param("apache-kafka:4.3.1", marks=pytest.mark.java)])
def test_an_hour_of_requests_harms_no_node_and_no_record(name, tmp_path):
    assert_unharmed(name, tmp_path, seed=int(time.time()), seconds=3600)


def assert_unharmed(name, tmp_path, *, seed, seconds):
    """Assert that a session has no violation. A late response is one only if a replay of its requests reproduces it."""

    def cluster(directory):
        return parse_target(name, 3, work_dir=directory, mesh=False)

    with cluster(tmp_path / "cluster") as target:
        limits = limits_for(target.kind)
        report = run_session(target, tmp_path / "run", SessionPlan(seed, seconds, limits))
    findings = [Replays(each, cluster, limits, time.monotonic() + 120).shrink() for each in report.progress.findings]
    violations = [(each.text, [request.title for request in each.requests]) for each in findings if each.is_violation]
    assert violations == [], seed
    assert report.judgement.verdict is Verdict.OK, (seed, report.judgement.anomalies)
    assert report.progress.responses.count > 100
    assert report.judgement.records > 100


def test_a_response_is_late_only_where_the_node_had_a_processor():
    assert Sample(1, 0.0, 0.4, 0.0).is_late(0.25)
    assert not Sample(1, 0.0, 0.2, 0.0).is_late(0.25)
    assert not Sample(1, 0.0, 0.4, 0.2).is_late(0.25)
    assert not Sample(1, 0.0, 3.0, 2.5).is_late(0.25)
    assert Sample(1, 0.0, 3.0, 0.3).is_late(0.25)


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"format": 2}', '{"format": 1, "target": "reference"}'])
def test_a_file_without_a_finding_is_reported_in_one_line(text, tmp_path):
    if text is not None:
        (tmp_path / "f.json").write_text(text)
    with pytest.raises(NotAFindingError, match=r"f\.json: ") as error:
        load(tmp_path / "f.json")
    assert "\n" not in str(error.value)
