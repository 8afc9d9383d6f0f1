"""Replay of saved trials on every target, whether the simulation, chaos or a requirement has saved them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.campaign.counterexample import FILE_NAME, Counterexample
from chaos.campaign.saved import save
from chaos.defects.saved import COUNTEREXAMPLES
from chaos.live import session
from chaos.live.report import Report, RoundFacts
from chaos.replay import TrialNotApplicableError, lines_of, replay
from conformance.trial.document import document
from conformance.trial.moves import Begin, Heal
from conformance.trial.phased_clients import OneShotProducer, SendRecords
from conformance.trial.saved import SavedTrial, load_trial
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import OneByOne, Pipelined, Tail
from fixtures.clients.core import process
from fixtures.clients.core.response_pairs import InvalidResponseError
from fixtures.clients.steps import (
    CommitOffsets,
    Consumer,
    CreateTopic,
    DeleteTopic,
    Flush,
    Idle,
    Poll,
    Produce,
    Producer,
    RequestClient,
)
from fixtures.clients.steps import SendBatches as StepSend
from fixtures.faults import AddBroker, Kill, Role, StaleCopy, Timed
from linearizability.history.reader import open_history
from linearizability.history.validate import validate
from linearizability.judgement import Judgement, Verdict

PROPERTIES = (("broker.heartbeat.interval.ms", "300"), ("broker.session.timeout.ms", "3000"))
ROUND = Trial(
    cluster=ClusterSettings(properties=PROPERTIES),
    topics=(Topic(partitions=2, properties=(("min.insync.replicas", "2"),)),),
    clients=(Pipelined(), OneByOne(), Tail()),
    schedule=(Timed(0, Kill(Role.LEADER), 1_000),),
)
OF_REQUIREMENT = Trial(
    clients=(OneShotProducer(steady=(SendRecords(2),), healed=(SendRecords(2),)),),
    moves=(Begin(Kill(Role.THIRD_REPLICA)), Heal(Role.THIRD_REPLICA)),
    requirement="produce/acknowledged-records-are-read-back",
)
OF_SIMULATION = "keep-the-log-under-a-snapshot"


@pytest.fixture
def saved_by(tmp_path):
    """Return a function that returns the trial file of a source."""

    def file_of(source) -> Path:
        match source:
            case "simulation":
                return COUNTEREXAMPLES / f"{OF_SIMULATION}.json"
            case "chaos":
                return (
                    save(tmp_path, Counterexample(ROUND, "lost-write", "a record is lost", 1, "reference")) / FILE_NAME
                )
            case _:
                file = tmp_path / "trial.json"
                file.write_text(document(OF_REQUIREMENT, {"name": OF_REQUIREMENT.requirement}))
                return file

    return file_of


@pytest.mark.parametrize("source", ["simulation", "chaos", "requirement"])
@pytest.mark.parametrize(
    "target",
    [
        "simulation",
        pytest.param("reference", marks=pytest.mark.slow),
        pytest.param("apache-kafka:4.3.1", marks=[pytest.mark.slow, pytest.mark.java]),
    ],
)
def test_a_saved_trial_runs_on_every_target(source, target, saved_by, tmp_path):
    saved = replace(load_trial(saved_by(source)), defect="")
    replayed = replay(saved, target, tmp_path / "run")
    assert (replayed.verdict, replayed.violations, replayed.without_effect) == (Verdict.OK, (), ())
    history = open_history(tmp_path / "run")
    validate(history)
    outcomes = [row["outcome"] for row in history.table("operations").to_pylist() if row["f"] == "produce"]
    assert "ok" in outcomes


def test_a_counterexample_violates_with_its_defect_in_the_simulation(saved_by, tmp_path):
    file = saved_by("simulation")
    replayed = replay(load_trial(file), "simulation", tmp_path / "run")
    facts = json.loads(file.read_text())
    assert replayed.verdict is Verdict.VIOLATION
    assert [name for name, _ in replayed.violations] == [facts["name"]]
    assert f"digest {facts['digest']}" in lines_of(replayed)


@pytest.mark.slow
def test_clients_with_steps_detect_a_defect_of_a_process(tmp_path):
    saved = load_trial(COUNTEREXAMPLES / "return-the-last-offset.json")
    replayed = replay(saved, "defective:return-the-last-offset", tmp_path / "run")
    assert "divergent-offset" in [name for name, _ in replayed.violations]


@pytest.mark.parametrize("target", ["reference", "defective:acknowledge-alone"])
def test_the_result_on_processes_names_a_defect_that_is_not_seeded(target, tmp_path, monkeypatch):
    def run_on(target, trial, run_dir, *, disk):
        return Report(
            trial=trial, target=target, judgement=Judgement(0, 0, ()), facts=RoundFacts(), lost={0: 0, 1: 0, -1: 0}
        )

    monkeypatch.setattr(session, "run_on", run_on)
    notes = replay(SavedTrial(ROUND, defect="acknowledge-alone"), target, tmp_path / "run").notes
    assert any("--target defective:acknowledge-alone" in note for note in notes) == (target == "reference")


@pytest.mark.slow
def test_topics_and_groups_of_clients_are_read_back_on_a_started_cluster(tmp_path):
    steps = (CreateTopic("b", partitions=2), Idle(1_000), Produce(topic="b", partition=1))
    trial = Trial(
        topics=(Topic(), Topic("c")),
        clients=(
            RequestClient(steps),
            Producer((StepSend(3, topic="c"), Flush())),
            Consumer((Idle(500), Poll(3), CommitOffsets()), group="g"),
        ),
    )
    replayed = replay(SavedTrial(trial), "reference", tmp_path / "run")
    assert (replayed.verdict, replayed.unknown) == (Verdict.OK, ())
    history = open_history(tmp_path / "run")
    assert {"a", "b", "c"} <= set(history.run.topics)
    read = {(row["topic"], row["partition"]) for row in records_of(history, "read")}
    assert {("b", 0), ("b", 1), ("c", 0)} <= read
    assert {(row["topic"], row["partition"]) for row in records_of(history, "send")} <= read
    assert "fetch_offsets" in {row["f"] for row in history.table("operations").to_pylist()}


@pytest.mark.slow
def test_a_wrong_response_of_a_started_cluster_is_a_violation(tmp_path, monkeypatch):
    def wrong(*_):
        raise InvalidResponseError("no broker may give it")

    monkeypatch.setattr(process, "check_response", wrong)
    topics = (Topic(replication_factor=1),)
    trial = Trial(cluster=ClusterSettings(nodes=1), topics=topics, clients=(RequestClient((Produce(),)),))
    replayed = replay(SavedTrial(trial), "reference", tmp_path / "run")
    assert replayed.violations == (("wrong-response", "no broker may give it"),)


def records_of(history, direction):
    return [row for row in history.table("records").to_pylist() if row["direction"] == direction]


def test_the_result_names_a_fault_that_found_nothing_to_break(tmp_path):
    trial = Trial(clients=(RequestClient(steps=(Produce(),)),), schedule=(Timed(5, AddBroker(2)),))
    replayed = replay(SavedTrial(trial), "simulation", tmp_path / "run")
    (idle,) = replayed.without_effect
    assert idle.timed == Timed(5, AddBroker(2))
    assert any(line.startswith("fault without effect: Timed(at_ms=5, ") for line in lines_of(replayed))


@pytest.mark.parametrize(
    ("trial", "target", "reason"),
    [
        (Trial(schedule=(Timed(0, StaleCopy(Role.LEADER), 9),)), "simulation", "the simulation has no fault StaleCopy"),
        (Trial(cluster=ClusterSettings(roles=((1, "broker"),))), "reference", "process.roles"),
        (
            Trial(clients=(RequestClient(steps=(DeleteTopic("a"),)),)),
            "reference",
            "the topic a, which the trial deletes",
        ),
        (replace(OF_REQUIREMENT, requirement="produce/nothing"), "simulation", "no concurrent requirement"),
        (replace(OF_REQUIREMENT, requirement=""), "librdkafka-mock", "cannot create the topic"),
        (
            replace(OF_REQUIREMENT, requirement="", moves=(Begin(StaleCopy(Role.FIRST_REPLICA)),)),
            "simulation",
            "the simulation has no fault StaleCopy",
        ),
        (replace(OF_REQUIREMENT, schedule=(Timed(0, Kill(1)),)), "simulation", "has a schedule"),
        (replace(OF_REQUIREMENT, clients=(OneByOne(),)), "simulation", "has clients without phases"),
        (
            replace(OF_REQUIREMENT, requirement="replication/isr-shrinks-and-expands", cluster=ClusterSettings(1)),
            "simulation",
            "needs",
        ),
    ],
)
def test_a_target_that_cannot_run_a_trial_is_named_before_anything_starts(trial, target, reason, tmp_path):
    with pytest.raises(TrialNotApplicableError, match=reason) as rejected:
        replay(SavedTrial(trial), target, tmp_path / "run")
    assert "\n" not in str(rejected.value)
    assert not (tmp_path / "run").exists()


def test_a_trial_with_moves_needs_no_requirement(tmp_path):
    properties = (("replica.lag.time.max.ms", "4000"),)
    trial = replace(OF_REQUIREMENT, requirement="", cluster=ClusterSettings(properties=properties))
    assert replay(SavedTrial(trial), "simulation", tmp_path / "run").verdict is Verdict.OK
    history = open_history(tmp_path / "run")
    assert history.run.cluster["replica.lag.time.max.ms"] == "4000"
    assert [row["kind"] for row in history.table("faults").to_pylist()] == ["kill"]


def test_roles_of_the_start_are_those_of_the_assignment(tmp_path):
    trial = Trial(
        topics=(Topic(replication_factor=2),),
        schedule=(Timed(5, Kill(Role.SECOND_REPLICA), 50), Timed(9, Kill(Role.THIRD_REPLICA), 50)),
    )
    replayed = replay(SavedTrial(trial), "simulation", tmp_path / "run")
    assert [idle.timed.fault for idle in replayed.without_effect] == [Kill(Role.THIRD_REPLICA)]
