"""Saved trials: a saved trial is loaded unchanged, and an invalid file is rejected in one line."""

import json

import pytest

from chaos.defects.saved import COUNTEREXAMPLES
from chaos.live.findings import FINDINGS
from chaos.live.strategies import round_of
from chaos.simulation.seeds import trial_of_seed
from conformance.trial.document import document
from conformance.trial.moves import AwaitIsr, Begin, Heal, MoveReplicas, StartBroker, StopBroker
from conformance.trial.phased_clients import MetadataWatcher, OneShotProducer, SendRecords
from conformance.trial.saved import NotATrialError, load_trial
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import Tail
from fixtures.clients.steps import Idle
from fixtures.faults import CutConnections, Damage, DamageDisk, Kill, Lost, Pause, Role, ShutDown

OF_REQUIREMENT = Trial(
    topics=(Topic(properties=(("min.insync.replicas", "2"),)),),
    clients=(
        OneShotProducer(steady=(SendRecords(2),), faulty=(SendRecords(3),)),
        MetadataWatcher(Role.SECOND_REPLICA, cluster=True),
        Tail("read_committed"),
    ),
    moves=(Begin(Kill(Role.FIRST_REPLICA)), AwaitIsr(2), Heal(Role.FIRST_REPLICA)),
    requirement="durability/acknowledged-writes-survive",
)


def loaded(tmp_path, text):
    file = tmp_path / "trial.json"
    file.write_text(text)
    return load_trial(file)


@pytest.mark.parametrize("generate", [trial_of_seed, round_of], ids=["simulation", "chaos"])
def test_trials_of_seeds_are_loaded_unchanged(generate, tmp_path):
    for seed in range(40):
        saved = loaded(tmp_path, document(generate(seed), {"name": "lost-write", "defect": None}))
        assert (saved.trial, saved.name, saved.defect) == (generate(seed), "lost-write", "")


def test_trials_of_findings_and_requirements_are_loaded_unchanged(tmp_path):
    for trial in (*(finding.trial for finding in FINDINGS.values()), OF_REQUIREMENT):
        assert loaded(tmp_path, document(trial, {})).trial == trial


def test_a_requirements_trial_of_version_1_is_read(tmp_path):
    moves = """[
        {"type": "Cut", "source": "CLIENT", "destination": "LEADER", "lost": "ANSWERS"},
        {"type": "PauseNode", "node": "FOLLOWER"},
        {"type": "Resume", "node": "FOLLOWER"},
        {"type": "ShutDown", "node": "OUTSIDER"},
        {"type": "DamageDisk", "node": "OUTSIDER", "what": "INDEXES"},
        {"type": "Wait", "duration_ms": 5},
        {"type": "Heal"},
        {"type": "AddBroker"},
        {"type": "Reassign", "replicas": ["NEWCOMER", "LEADER"]},
        {"type": "RemoveBroker"}
    ]"""
    clients = '[{"type": "Consumer"}, {"type": "MetadataWatcher", "node": "FOLLOWER"}]'
    topic = '{"type": "TopicSettings", "partitions": 2}'
    script = f'{{"type": "ConcurrentScript", "topic": {topic}, "clients": {clients}, "nemesis": {moves}}}'
    trial = f'{{"type": "RequirementTrial", "requirement": "a/b", "nodes": 4, "script": {script}}}'
    assert loaded(tmp_path, f'{{"trial_version": 1, "trial": {trial}}}').trial == Trial(
        cluster=ClusterSettings(4),
        topics=(Topic(partitions=2, replication_factor=1),),
        clients=(Tail(), MetadataWatcher(Role.SECOND_REPLICA)),
        requirement="a/b",
        moves=(
            Begin(CutConnections(Role.CLIENTS, Role.FIRST_REPLICA, Lost.ANSWERS)),
            Begin(Pause(Role.SECOND_REPLICA)),
            Heal(Role.SECOND_REPLICA),
            Begin(ShutDown(Role.OUTSIDER)),
            Begin(DamageDisk(Role.OUTSIDER, Damage.INDEXES)),
            Idle(5),
            Heal(),
            StartBroker(),
            MoveReplicas((Role.NEWCOMER, Role.FIRST_REPLICA)),
            StopBroker(),
        ),
    )


def test_every_saved_counterexample_is_a_saved_trial():
    files = list(COUNTEREXAMPLES.glob("*.json"))
    assert len(files) > 50
    for file in files:
        saved = load_trial(file)
        assert saved.defect == file.stem
        assert saved.name
        assert json.loads(document(saved.trial, {}))["trial"] == json.loads(file.read_text())["trial"]


def changed(**fields):
    """Return the document of the default trial with other values for these members of the document."""
    return json.dumps(json.loads(document(Trial(), {})) | fields)


def document_of(**fields):
    """Return the document of a trial with these fields."""
    return changed(trial={"type": "Trial", **fields})


def reassignment(replicas):
    return document_of(
        clients=[{"type": "RequestClient", "steps": [{"type": "ReassignPartition", "replicas": replicas}]}]
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("\x00", "it is not JSON"),
        ("[]", "not a saved trial"),
        ("{}", "not a saved trial"),
        ("[" * 100_000, "nested too deeply"),
        (changed(trial_version=3), "trial_version: 3; this kafkatrial reads versions 1 and 2"),
        (changed(trial_version=True), "trial_version: true"),
        (changed(trial_version=[2]), "trial_version: [2]"),
        (changed(trial=[]), "is not of type Trial"),
        (changed(trial={"type": "Topic"}), 'type "Topic" is not one of Trial'),
        (changed(defect=7), "name, defect and target"),
        (document_of(topics=[]), "at least one topic"),
        (document_of(nope=1), 'Trial has no field "nope"'),
        (document_of(seed="1"), 'trial.seed: "1" is not of type int'),
        (document_of(seed=True), "trial.seed: true is not of type int"),
        (document_of(clients={}), "trial.clients: {} is not of type array"),
        (document_of(clients=[{"type": "Cut"}]), 'trial.clients[0]: type "Cut" is not one of Producer'),
        (document_of(schedule=[{"type": "Timed", "at_ms": 1}]), "trial.schedule[0]: Timed needs the field fault"),
        (
            document_of(schedule=[{"type": "Timed", "at_ms": 1, "fault": {"type": "Kill", "node": "UNKNOWN"}}]),
            "int or Role",
        ),
        (document_of(schedule=[{"type": "Timed", "at_ms": 1, "fault": {"type": "Kill", "node": []}}]), "int or Role"),
        (reassignment([1, "x"]), 'trial.clients[0].steps[0].replicas[1]: "x" is not of type int'),
        (reassignment({"a": 1}), 'trial.clients[0].steps[0].replicas: {"a": 1} is not of type array or null'),
        (document_of(steady_ms="_").replace('"_"', "NaN"), "trial.steady_ms: NaN is not of type int"),
        (document_of(steady_ms="_").replace('"_"', "9" * 5_000), "trial.steady_ms: Infinity is not of type int"),
        (changed(trial_version=10**9), "trial_version: 1000000000"),
    ],
)
def test_an_invalid_trial_is_rejected_in_one_line(text, reason, tmp_path):
    with pytest.raises(NotATrialError) as rejected:
        loaded(tmp_path, text)
    assert reason in str(rejected.value)
    assert "trial.json" in str(rejected.value)
    assert "\n" not in str(rejected.value)


def test_numbers_of_a_requirements_trial_have_limits_too(tmp_path):
    text = document(OF_REQUIREMENT, {})
    with pytest.raises(NotATrialError, match="records is -1; it must be between 1 and"):
        loaded(tmp_path, text.replace('"records": 3', '"records": -1'))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"records": 2',
            '"records": 2}], "partition": 1, "healed": [{"type": "Flush"',
            "partition is 1; the topic has 1",
        ),
        (
            '"type": "MetadataWatcher", "node": "SECOND_REPLICA", "cluster": true',
            '"type": "Consumer", "isolation": "x"',
            '"x"',
        ),
    ],
    ids=["partition", "isolation"],
)
def test_a_requirements_trial_that_cannot_run_is_rejected(tmp_path, old, new, reason):
    text = json.dumps(json.loads(document(OF_REQUIREMENT, {})))
    assert old in text
    with pytest.raises(NotATrialError, match=reason):
        loaded(tmp_path, text.replace(old, new))


def test_a_file_that_does_not_exist_is_rejected(tmp_path):
    with pytest.raises(NotATrialError, match=r"none\.json"):
        load_trial(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"healed_ms": 10**12}, "trial.healed_ms"),
        ({"steady_ms": -1}, "trial.steady_ms"),
        ({"topics": [{"type": "Topic", "partitions": 0}]}, "trial.topics[0].partitions"),
        ({"cluster": {"type": "ClusterSettings", "nodes": 0}}, "trial.cluster.nodes"),
        ({"clients": [{"type": "OneByOne", "pause_ms": 0}]}, "trial.clients[0].pause_ms"),
        (
            {"schedule": [{"type": "Timed", "at_ms": 5, "for_ms": -5, "fault": {"type": "Kill", "node": 1}}]},
            "trial.schedule[0].for_ms",
        ),
        (
            {"clients": [{"type": "Producer", "steps": [{"type": "SendBatches", "batches": 10**6}]}]},
            "the clients of a trial have at most 100000 steps",
        ),
        ({"topics": [{"type": "Topic", "name": "../x"}]}, 'trial.topics[0].name: "../x" is not a topic name'),
        ({"topics": [{"type": "Topic", "name": ".."}]}, "trial.topics[0].name"),
        ({"topics": [{"type": "Topic"}, {"type": "Topic"}]}, "is the name of another topic"),
        ({"topics": [{"type": "Topic", "name": each} for each in ("a.b", "a_b")]}, "differs only in . and _"),
        ({"topics": [{"type": "Topic", "name": "__consumer_offsets"}]}, "trial.topics[0].name"),
        ({"topics": [{"type": "Topic", "replication_factor": 4}]}, "trial.topics[0].replication_factor is 4"),
        ({"topics": [{"type": "Topic", "properties": [["a", "\ud800"]]}]}, "is not valid Unicode"),
        ({"topics": [{"type": "Topic", "name": str(each), "partitions": 900} for each in "ab"]}, "1000 partitions"),
        ({"cluster": {"type": "ClusterSettings", "properties": [["a", "b\nc=d"]]}}, 'broker property "a"'),
        ({"cluster": {"type": "ClusterSettings", "properties": [["process.roles", "broker"]]}}, "set by the target"),
        ({"cluster": {"type": "ClusterSettings", "roles": [[1, "broker"]] * 2}}, "node 1 has other roles, too"),
        ({"cluster": {"type": "ClusterSettings", "roles": [[1, "king"]]}}, '"king" is not broker, controller or both'),
        ({"cluster": {"type": "ClusterSettings", "roles": [[1, ""]]}}, '"" is not broker, controller or both'),
        ({"cluster": {"type": "ClusterSettings", "nodes": 1, "roles": [[1, "broker"]]}}, "at least one controller"),
        ({"clients": [{"type": "Pipelined", "acks": 7}]}, "trial.clients[0].acks is 7"),
        (
            {"clients": [{"type": "Producer", "compression": "lzma"}]},
            'trial.clients[0].compression: "lzma" is not one of',
        ),
        (
            {"clients": [{"type": "RequestClient", "steps": [{"type": "Describe", "subject": "x"}]}]},
            'trial.clients[0].steps[0].subject: "x" is not one of cluster',
        ),
        (
            {"clients": [{"type": "Consumer", "partitions": []}]},
            "trial.clients[0].partitions: a consumer has at least one",
        ),
        ({"clients": [{"type": "Producer", "in_flight_max": 0}]}, "trial.clients[0].in_flight_max is 0"),
        ({"clients": [{"type": "PipelinedProducer", "linger_ms": 10**6}]}, "trial.clients[0].linger_ms is 1000000"),
        ({"clients": [{"type": "PipelinedProducer", "batch_records_max": 0}]}, "trial.clients[0].batch_records_max"),
        ({"clients": [{"type": "Pipelined", "acks": 1}]}, "acks is 1; an idempotent producer has -1"),
        ({"clients": [{"type": "Pipelined", "in_flight_max": 6}]}, "an idempotent producer has at most 5"),
        ({"clients": [{"type": "Tail"}] * 2_000}, "trial.clients has 2000 elements"),
        ({"steady_ms": 3_000_000, "healed_ms": 3_000_000}, "the phases of a trial last at most 3600000 ms together"),
    ],
)
def test_values_that_no_run_can_use_are_rejected_in_one_line(tmp_path, fields, reason):
    with pytest.raises(NotATrialError) as rejected:
        loaded(tmp_path, document_of(**fields))
    assert reason in str(rejected.value)
    assert "\n" not in str(rejected.value)
