"""`kafkatrial replay`: the result of a saved trial, and one line for a file that cannot run or a missing cluster."""

import json
import os
from pathlib import Path

import pytest

from chaos.defects.saved import COUNTEREXAMPLES
from conformance.trial.document import document
from conformance.trial.trial import ClusterSettings, Topic, Trial
from fixtures.clients.steps import Producer, SendBatches
from fixtures.faults import Role, StaleCopy, Timed
from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode

WITH_DEFECT = COUNTEREXAMPLES / "keep-the-log-under-a-snapshot.json"


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        file = tmp_path / "trial.json"
        file.write_text(text)
        return str(file)

    return write


def test_a_trial_without_a_violation_exits_0_and_keeps_its_history(saved, capsys):
    file = saved(document(Trial(clients=(Producer(steps=(SendBatches(),)),)), {}))
    assert exit_code(["replay", file, "--target", "simulation", "--json"]) == ExitCode.OK
    result = json.loads(capsys.readouterr().out)
    assert (result["target"], result["verdict"], result["violations"]) == ("simulation", "ok", [])
    assert exit_code(["check", result["history"]]) == ExitCode.OK


def test_a_counterexample_exits_1_and_names_what_it_violates(saved, capsys):
    assert exit_code(["replay", str(WITH_DEFECT), "--target", "simulation"]) == ExitCode.VIOLATION
    facts = json.loads(WITH_DEFECT.read_text())
    out = capsys.readouterr().out
    assert out.startswith(f"simulation: violation\nviolation {facts['name']}: ")
    assert f"seeded defect: {WITH_DEFECT.stem}" in out


def test_a_file_that_cannot_be_read_is_reported_in_one_line_with_exit_code_4(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    Path("directory").mkdir()
    Path("utf-8").write_bytes(b'{"trial": "\xff"}')
    for name, reason in (("fifo", "a FIFO"), ("directory", "a directory"), ("utf-8", "not JSON"), ("none", "No such")):
        assert exit_code(["replay", name]) == ExitCode.USAGE
        error = capsys.readouterr().err
        assert f"{name}: " in error
        assert reason in error
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "target", "reason"),
    [
        ("no json", "simulation", "not a saved trial"),
        ("{}", "simulation", "not a saved trial"),
        (document(Trial(), {}).replace('"trial_version": 2', '"trial_version": 9'), "simulation", "trial_version: 9"),
        (
            document(Trial(topics=(Topic(properties=(("no.such", "1"),)),)), {}),
            "simulation",
            "no topic property no.such",
        ),
        (document(Trial(topics=(Topic(properties=(("segment.ms", "x"),)),)), {}), "simulation", "rejects segment.ms=x"),
        (
            document(Trial(cluster=ClusterSettings(properties=(("log.segment.bytes", "x"),))), {}),
            "simulation",
            "rejects log.segment.bytes=x",
        ),
        (document(Trial(schedule=(Timed(0, StaleCopy(Role.LEADER), 9),)), {}), "simulation", "StaleCopy"),
        (document(Trial(), {}), "nonsense", "nonsense"),
    ],
)
def test_a_trial_that_cannot_run_is_reported_in_one_line_with_exit_code_4(
    saved, text, target, reason, capsys, tmp_path
):
    assert exit_code(["replay", saved(text), "--target", target]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob(".kafkatrial/replays/*"))


def test_only_a_new_directory_is_removed_if_nothing_ran(saved, tmp_path):
    file = saved(document(Trial(schedule=(Timed(0, StaleCopy(Role.LEADER), 9),)), {}))
    (tmp_path / "existing").mkdir()
    for out in ("existing", "new"):
        assert exit_code(["replay", file, "--target", "simulation", "--out", out]) == ExitCode.USAGE
    assert (tmp_path / "existing").is_dir()
    assert not (tmp_path / "new").exists()


def test_a_cluster_that_does_not_respond_is_reported_in_one_line_with_exit_code_3(saved, capsys):
    assert exit_code(["replay", saved(document(Trial(), {})), "--target", "bootstrap:127.0.0.1:1"]) == ExitCode.INTERNAL
    error = capsys.readouterr().err
    assert "no Kafka broker responds at 127.0.0.1:1" in error
    assert error.count("\n") == 1
