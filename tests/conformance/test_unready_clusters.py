"""Existing clusters that are not ready: librdkafka cannot write and read a record, or a broker does not respond."""

import re
import uuid
from dataclasses import replace

import pytest

from conformance.engine import run_requirements
from conformance.events import RequirementJudged, TargetStarted
from conformance.profiles import Profile
from conformance.registry import REQUIREMENTS
from fixtures.targets import bootstrap
from fixtures.targets.catalogue import parse_target
from fixtures.targets.probe import probe
from fixtures.targets.target import TargetError
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import TamperingProxy, altered, api

FEW = Profile("few", scripts_max=3, shrink_seconds=0.0)


def metadata_with(path, **changes):
    def tamper(request, forward):
        response = forward(request)
        if api(request) != "Metadata":
            return response
        return altered(
            response, path, lambda part: replace(part, **{k: v for k, v in changes.items() if hasattr(part, k)})
        )

    return tamper


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with parse_target("reference", nodes=1, mesh=False, work_dir=tmp_path_factory.mktemp("broker")) as target:
        yield target


@pytest.mark.parametrize(
    ("tamper", "requirement"),
    [
        (metadata_with("topics", topic_id=uuid.UUID(int=7)), "metadata/topic-id-names-one-creation"),
        (metadata_with("topics.partitions", leader_epoch=9), "epochs/responses-carry-the-epoch"),
    ],
    ids=["topic id", "leader epoch"],
)
def test_requirements_name_the_deviation(broker, tamper, requirement, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "READY_TIMEOUT_S", 1.0)
    monkeypatch.setattr("fixtures.targets.readiness.ROUND_TRIP_TIMEOUT_S", 0.5)
    chosen = [each for each in REQUIREMENTS if each.id == requirement]
    with TamperingProxy(broker, tamper) as proxy:
        existing = parse_target(f"bootstrap:{proxy.bootstrap_servers}", mesh=False)
        events = list(run_requirements([existing], chosen, seed=1, profile=FEW, run_dir=tmp_path / "run"))
    (started,) = (event for event in events if isinstance(event, TargetStarted))
    assert started.warning.startswith("librdkafka cannot write and read a record here: not ready within 1 s: ")
    assert re.search(r"; the metadata from 127\.\S+ advertises 127\.\S+$", started.warning)
    (finding,) = (event.finding for event in events if isinstance(event, RequirementJudged))
    assert finding.verdict is Verdict.VIOLATION, finding.reason


def test_a_cluster_of_which_a_broker_does_not_respond_is_not_started(broker, monkeypatch):
    def not_ready(*_):
        raise TargetError("not ready within 30 s: no broker responded")

    def silent(host, port, settings):
        if probed:
            raise TargetError(f"{host}:{port} does not respond")
        probed.append(port)
        return probe(host, port, settings=settings)

    probed = []
    monkeypatch.setattr(bootstrap, "await_ready", not_ready)
    monkeypatch.setattr("fixtures.targets.probe.probe", silent)
    existing = parse_target(f"bootstrap:{broker.bootstrap_servers}", mesh=False)
    with pytest.raises(TargetError, match=r"^not ready within 30 s: no broker responded; .* does not respond$"):
        existing.start()
