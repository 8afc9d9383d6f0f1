"""Printed programs of trials: target, output and exit codes."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from conformance.concurrent.program import program_of
from conformance.concurrent.replay import run_program
from conformance.trial.moves import Begin
from conformance.trial.phased_clients import OneShotProducer, SendRecords
from conformance.trial.trial import ClusterSettings, Topic, Trial
from fixtures.faults import CutConnections, Role

TRIAL = Trial(
    cluster=ClusterSettings(1),
    topics=(Topic(replication_factor=1),),
    clients=(OneShotProducer(steady=(SendRecords(3),)),),
    requirement="produce/acknowledged-records-are-read-back",
)


@pytest.fixture(autouse=True)
def no_arguments(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["repro.py"])


def test_a_program_prints_the_verdict_as_json_and_the_directory_of_the_history(capsys):
    assert run_program(TRIAL, "reference") == 0
    printed = capsys.readouterr()
    verdict = json.loads(printed.out)
    assert (verdict["verdict"], verdict["judgement"]["records"]) == ("ok", 6)
    assert printed.err.startswith("history: ")


@pytest.mark.parametrize("target", ["simulation", "defective:flush-no-directory"])
def test_a_printed_program_runs_on_every_kind_of_target(tmp_path, target):
    path = tmp_path / "repro.py"
    path.write_text(program_of(TRIAL, target))
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["verdict"] == "ok"


def test_another_target_may_be_named(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["repro.py", "no-such-target"])
    assert run_program(TRIAL, "reference") == 4
    _, reason = capsys.readouterr().err.splitlines()
    assert "no-such-target" in reason


def test_an_existing_cluster_has_its_own_number_of_nodes(capsys, broker):
    """The number of nodes in the trial is ignored if the program was printed for an existing cluster."""
    address = f"bootstrap:{broker.nodes[0].host}:{broker.nodes[0].port}"
    assert run_program(TRIAL, address) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "ok"


def test_another_target_starts_with_its_own_number_of_nodes(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["repro.py", "reference"])
    assert run_program(replace(TRIAL, cluster=ClusterSettings(3)), "apache-kafka:4.3.1") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "ok"


def test_a_trial_that_a_target_cannot_run_is_reported_in_one_line(capsys):
    trial = replace(TRIAL, moves=(Begin(CutConnections(Role.SECOND_REPLICA, 1)),))
    assert run_program(trial, "reference") == 3
    _, reason = capsys.readouterr().err.splitlines()
    assert reason == "no node has the role second-replica for the topic"


def test_an_unknown_requirement_is_reported_in_one_line(capsys):
    assert run_program(replace(TRIAL, requirement="produce/no-such"), "reference") == 3
    _, reason = capsys.readouterr().err.splitlines()
    assert reason == "there is no concurrent requirement produce/no-such in this version"
