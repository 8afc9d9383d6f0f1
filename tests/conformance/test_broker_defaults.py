"""No requirement is violated on correct brokers whose defaults for new topics differ from Apache Kafka's."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from conformance.concurrent.fault_requirements import ROWS
from conformance.concurrent.requirement_row import RequirementRow
from conformance.engine import run_requirements
from conformance.events import RequirementJudged, RunEnded
from conformance.profiles import Profile
from conformance.registry import REQUIREMENTS
from conformance.sequential import session
from conformance.sequential.pinned import pinned, with_unlimited_retention, without_automatic_creation
from conformance.sequential.steps import (
    AlterConfigs,
    CreateTopic,
    DeleteTopic,
    DeleteTopicById,
    DescribeConfigs,
    Eventually,
    IncrementalAlterConfigs,
    Metadata,
    On,
    Operation,
    Produce,
    Script,
    WithUnknownTags,
)
from conformance.targets import FREQUENT_CLEANUP
from fixtures.clients import requests
from fixtures.clients.broker_defaults import settings_to_pin
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient
from fixtures.network.toxiproxy_binary import find_toxiproxy
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Capability
from tests.conformance.tamperings import TAMPERINGS
from tests.sampling import part
from tests.waiting import wait_until

COMBINATIONS: list[Mapping[str, str]] = [  # properties of a broker
    {"log.message.timestamp.type": "LogAppendTime"},
    {"compression.type": "zstd", "min.insync.replicas": "2"},
    {"log.cleanup.policy": "compact,delete"},
    {"log.cleanup.policy": "compact", "compression.type": "lz4", "log.message.timestamp.type": "LogAppendTime"},
    {"message.max.bytes": "20000", "offset.metadata.max.bytes": "100"},
    {"message.max.bytes": "5000000", "compression.type": "gzip"},
    {"log.message.timestamp.before.max.ms": "60000", "compression.type": "snappy"},
    {"log.message.timestamp.after.max.ms": "1000"},
    {"log.retention.bytes": "100", "log.retention.ms": "1000", "log.retention.check.interval.ms": "1000"},
    {"num.partitions": "4", "auto.create.topics.enable": "true", "compression.type": "uncompressed"},
    {"log.roll.ms": "1000", "log.segment.bytes": "1048576", "log.index.interval.bytes": "1"},
    {"unclean.leader.election.enable": "true", "log.preallocate": "true", "min.insync.replicas": "3"},
    {"offset.metadata.max.bytes": "0", "group.coordinator.rebalance.protocols": "classic"},
    {"log.cleaner.enable": "false", "socket.request.max.bytes": "200000"},
    {"log.cleaner.min.compaction.lag.ms": "100000", "max.request.partition.size.limit": "1"},
    {"transaction.max.timeout.ms": "2000", "producer.id.expiration.ms": "1000"},
    {"delete.topic.enable": "false", "group.min.session.timeout.ms": "40000", "group.max.session.timeout.ms": "50000"},
]
SEQUENTIAL = [requirement for requirement in REQUIREMENTS if requirement.id in TAMPERINGS]


CONFIGURATIONS = [
    (combination, nodes, elr)
    for nodes, elr in ((1, True), (3, False), (5, True), (1, False), (3, True), (5, False))
    for combination in COMBINATIONS
]
"""Each combination on one, three and five nodes, with and without eligible leader replicas (ELR, KIP-966)."""
SMALL_CONFIGURATIONS = [each for each in CONFIGURATIONS if each[1] < 5]
"""The configurations with fewer than five nodes, from which CI takes its sample."""
RECOVERY = [
    requirement
    for requirement in map(RequirementRow.requirement, ROWS)
    if Capability.PROCESS_CONTROL in requirement.needs
]
"""Concurrent requirements that kill, pause or restart nodes."""
ELR = "eligible.leader.replicas.version"
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


def finalized(client):
    """Return the finalized level of `eligible.leader.replicas.version`, or 0 if it is not finalized."""
    response = client.request(requests.api_versions(client.schema_for(ApiKey.API_VERSIONS)))
    return {each.name: each.max_version_level for each in response.finalized_features}.get(ELR, 0)


def set_elr(target, level):
    """Finalize this level of `eligible.leader.replicas.version`, and wait until every node has it."""
    first = target.nodes[0]
    with RawClient(first.host, first.port) as client:
        if finalized(client) != level:
            schema = client.schema_for(ApiKey.UPDATE_FEATURES)
            kind = _UPGRADE if level else _SAFE_DOWNGRADE
            update = requests.fitted(
                schema.FeatureUpdateKey, feature=ELR, max_version_level=level, upgrade_type=kind, allow_downgrade=True
            )
            message = {"timeout": timedelta(seconds=20), "feature_updates": (update,), "validate_only": False}
            response = client.request(requests.fitted(schema.UpdateFeaturesRequest, **message))
            assert not response.error_code, response
    for node in target.nodes:
        with RawClient(node.host, node.port) as client:
            wait_until(lambda client=client: finalized(client) == level)


def judged(target, combination, requirements, run_dir, nodes=1, *, elr=None, mesh=False):
    """Run two scripts for each requirement on a target with these properties, and return the findings.

    :param elr: whether the cluster has eligible leader replicas; None for the default of its version.
    """
    properties = {**FREQUENT_CLEANUP, **combination}
    started = parse_target(target, nodes=nodes, properties=properties, mesh=mesh, work_dir=run_dir / "work")
    if elr is not None:

        def start():
            type(started).start(started)
            set_elr(started, int(elr))

        started.start = start
    few = Profile("few", scripts_max=2, shrink_seconds=1.0)
    events = list(run_requirements([started], requirements, seed=4, profile=few, run_dir=run_dir / "run"))
    assert isinstance(events[-1], RunEnded)
    return [event.finding for event in events if isinstance(event, RequirementJudged)]


def assert_silent(findings):
    wrong = [(each.requirement, each.reason) for each in findings if each.verdict not in {"ok", "not-applicable"}]
    assert wrong == []
    assert any(each.verdict == "ok" for each in findings)


@pytest.mark.parametrize("combination", part(COMBINATIONS, 1), ids=str)
def test_a_sample_on_the_reference_broker_with_other_defaults(combination, tmp_path):
    assert_silent(judged("reference", combination, part(SEQUENTIAL, 35), tmp_path))


@pytest.mark.nightly
@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_the_reference_broker_with_other_defaults(combination, tmp_path):
    assert_silent(judged("reference", combination, SEQUENTIAL, tmp_path))


@pytest.mark.java
@pytest.mark.parametrize(("combination", "nodes", "elr"), part(SMALL_CONFIGURATIONS, 1), ids=str)
def test_a_sample_on_apache_kafka_with_other_defaults(combination, nodes, elr, tmp_path):
    assert_silent(judged("apache-kafka:4.3.1", combination, part(SEQUENTIAL, 15), tmp_path, nodes, elr=elr))


@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.parametrize(("combination", "nodes", "elr"), part(CONFIGURATIONS, 36), ids=str)
def test_apache_kafka_with_other_defaults(combination, nodes, elr, tmp_path):
    """Each night, up to 36 of the configurations; after three nights, all of them have run."""
    assert_silent(judged("apache-kafka:4.3.1", combination, SEQUENTIAL, tmp_path, nodes, elr=elr))


@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.parametrize("nodes", [3, 5])
@pytest.mark.parametrize("elr", [True, False])
def test_killed_nodes_of_apache_kafka_with_and_without_elr(elr, nodes, tmp_path):
    """Only without ELR may the last member of the ISR lead again after losing records. No requirement excludes this."""
    mesh = None if find_toxiproxy() else False
    assert_silent(judged("apache-kafka:4.3.1", {}, RECOVERY, tmp_path, nodes, elr=elr, mesh=mesh))


def test_without_pinned_settings_there_is_a_false_violation(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "settings_to_pin", lambda client, node_id: {})
    without_keys = [each for each in SEQUENTIAL if each.id == "produce/offsets-are-dense"]
    [finding] = judged("reference", COMBINATIONS[3], without_keys, tmp_path)  # a compacted topic rejects the records
    assert finding.verdict == "violation"


def test_only_settings_that_differ_are_pinned(tmp_path):
    combination = {"log.message.timestamp.type": "LogAppendTime", "compression.type": "producer"}
    with parse_target("reference", nodes=1, properties=combination, mesh=False) as target:
        [node] = target.nodes
        with RawClient(node.host, node.port) as client:
            assert settings_to_pin(client, node.id) == {"message.timestamp.type": "CreateTime"}


def test_scripts_that_remove_settings_set_the_pinned_ones_again():
    script = Script(
        (
            CreateTopic(configs=(("cleanup.policy", "compact"),)),
            IncrementalAlterConfigs(
                (("compression.type", Operation.DELETE, None), ("retention.ms", Operation.DELETE, None))
            ),
            AlterConfigs((("retention.ms", "1"),)),
            Eventually(DescribeConfigs(("compression.type",))),
        )
    )
    settings = {"cleanup.policy": "delete", "compression.type": "producer"}
    created, changed, replaced, described = pinned(script, settings).steps
    assert created == CreateTopic(configs=(("compression.type", "producer"), ("cleanup.policy", "compact")))
    assert changed.changes == (
        ("compression.type", Operation.SET, "producer"),
        ("retention.ms", Operation.DELETE, None),
    )
    assert dict(replaced.configs) == {**settings, "retention.ms": "1"}
    assert described == script.steps[3]
    assert pinned(script, {}) is script


def test_topics_for_old_records_have_unlimited_retention():
    named, other = CreateTopic(configs=(("segment.ms", "9"),)), CreateTopic(configs=(("retention.ms", "5"),))
    described = Script((named, DescribeConfigs(("retention.ms",))))
    created, kept, _ = with_unlimited_retention(Script((named, other, Produce(())))).steps
    assert dict(created.configs) == {"segment.ms": "9", "retention.ms": "-1"}
    assert kept == other
    assert with_unlimited_retention(described) is described


@pytest.mark.parametrize("step", [Produce(()), Eventually(Produce(())), WithUnknownTags(Produce(()))])
def test_topics_have_unlimited_retention_whatever_step_is_around_the_produce_request(step):
    created, _ = with_unlimited_retention(Script((CreateTopic(configs=()), step))).steps
    assert dict(created.configs) == {"retention.ms": "-1"}


def test_retention_is_not_judged_where_logs_are_checked_seldom(tmp_path):
    chosen = [each for each in SEQUENTIAL if each.id == "retention/size-deletes-oldest-segments"]
    (finding,) = judged("reference", {"log.retention.check.interval.ms": "300000"}, chosen, tmp_path)
    assert finding.verdict == "not-applicable"
    assert finding.reason.startswith("log.retention.check.interval.ms is 300000")


def test_metadata_of_an_unknown_topic_creates_none(tmp_path):
    """Metadata versions below 4 cannot forbid the creation, so they are sent only for known topics."""
    chosen = [each for each in SEQUENTIAL if each.id == "negotiation/every-version-is-served"]
    assert_silent(judged("reference", {"auto.create.topics.enable": "true"}, chosen, tmp_path))
    known, unknown = Metadata(version=1), Metadata(("trial", "trial-none"), version=1)
    script = Script((CreateTopic(), known, unknown, Metadata(("trial-none",), version=7)))
    steps = without_automatic_creation(script).steps
    assert steps == (CreateTopic(), known, Metadata(("trial", "trial-none"), version=4), script.steps[3])


@pytest.mark.parametrize(
    ("before", "version"),
    [
        ((), 4),
        ((CreateTopic(),), 1),
        ((On(2, CreateTopic()),), 1),
        ((CreateTopic(validate_only=True),), 4),
        ((CreateTopic(), DeleteTopic()), 4),
        ((CreateTopic(), On(2, DeleteTopic()), CreateTopic()), 1),
        ((CreateTopic(), DeleteTopicById(0)), 4),
    ],
)
def test_old_metadata_requests_name_only_topics_that_exist_at_that_step(before, version):
    script = Script((*before, Eventually(Metadata(version=1)), CreateTopic()))
    *_, described, _ = without_automatic_creation(script).steps
    assert described == Eventually(Metadata(version=version))


def test_oversize_metadata_is_judged_by_the_limit_that_the_broker_describes(tmp_path):
    chosen = [each for each in SEQUENTIAL if each.area == "groups"]
    findings = judged("reference", {"offset.metadata.max.bytes": "100"}, chosen, tmp_path)
    assert_silent(findings)
    (oversize,) = (each for each in findings if each.requirement == "groups/oversize-metadata-is-rejected")
    assert oversize.verdict == "ok"
