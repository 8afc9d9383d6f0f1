"""`kafkatrial check --model`: the linearizability of any object, from a file or a run directory."""

import json
import os
import shutil
from pathlib import Path

import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from linearizability.models.catalogue import MODELS

EXAMPLES = Path(__file__).parents[2] / "examples" / "histories"
WRITE = {"op_id": 1, "process": "a", "input": ["write", 3], "invoke_ns": 0, "complete_ns": 10}
READ = {"op_id": 2, "process": "b", "input": ["read"], "output": 4, "invoke_ns": 5, "complete_ns": 15}


@pytest.fixture
def operations(tmp_path):
    path = tmp_path / "operations.ndjson"
    path.write_text(json.dumps(WRITE) + "\n" + json.dumps(READ) + "\n")
    return str(path)


def test_a_violation_is_printed_as_json_and_drawn(tmp_path, capsys, operations):
    page = tmp_path / "page.html"
    command = ["check", operations, "--model", "register", "--json", "--picture", str(page)]
    assert exit_code(command) is ExitCode.VIOLATION
    (anomaly,) = json.loads(capsys.readouterr().out)["anomalies"]
    assert (anomaly["name"], anomaly["evidence"][0]["op_ids"]) == ("not-linearizable", [2])
    assert "read() -&gt; 4" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("limit", [["--time-limit", "0"], ["--step-limit", "0"]])
def test_an_exhausted_budget_is_inconclusive(capsys, operations, limit):
    assert exit_code(["check", operations, "--model", "register", *limit]) is ExitCode.INCONCLUSIVE
    assert "budget" in capsys.readouterr().out


@pytest.mark.parametrize("limit", ["inf", "1e300"])
def test_an_infinite_time_limit(operations, limit):
    assert exit_code(["check", operations, "--model", "register", "--time-limit", limit]) is ExitCode.VIOLATION


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "name the model to check it against (--model): register, compare-and-set"),
        (["--model", "regster"], f"there is no model 'regster'; there are {', '.join(MODELS)} (--models lists"),
        (
            ["--model", "register", "--engine", "spark"],
            "Spark looks for anomalies only; leave --engine or --model out",
        ),
    ],
)
def test_invalid_options_are_reported_in_one_line(capsys, operations, more, message):
    assert exit_code(["check", operations, *more]) is ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_path_that_is_neither_a_file_nor_a_directory(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/null", str(pipe)):
        assert exit_code(["check", path]) is ExitCode.USAGE
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{path}: neither a file nor a directory; a history is read twice" in line


def test_long_values_do_not_fill_the_terminal(tmp_path, capsys):
    path = tmp_path / "operations.ndjson"
    path.write_text(json.dumps({**WRITE, "input": ["write", "x" * 700_000]}) + "\n" + json.dumps(READ) + "\n")
    assert exit_code(["check", str(path), "--model", "register"]) is ExitCode.VIOLATION
    shown = capsys.readouterr().out
    assert "xxx" in shown
    assert len(shown) < 5_000


def test_models_are_listed(capsys):
    assert exit_code(["check", "--models"]) is ExitCode.OK
    shown = capsys.readouterr().out
    assert all(f"{name}: " in shown for name in MODELS)


def test_a_run_directory_is_checked_against_the_append_log_model(tmp_path, capsys):
    run_dir = tmp_path / "run"
    shutil.copytree(EXAMPLES / "lost-write", run_dir)
    page = tmp_path / "page.html"
    command = ["check", str(run_dir), "--model", "append-log", "--json", "--picture", str(page)]
    assert exit_code(command) is ExitCode.VIOLATION
    (anomaly,) = json.loads(capsys.readouterr().out)["anomalies"]
    (evidence,) = anomaly["evidence"]
    assert (anomaly["name"], evidence["topic"], evidence["partition"]) == ("not-linearizable", "orders", 2)
    assert "not-linearizable in orders-2 at offset 65" in page.read_text(encoding="utf-8")
    assert page.stat().st_size < 1_000_000
    assert exit_code(["check", str(run_dir), "--model", "queue"]) is ExitCode.USAGE
    assert "a Kafka history has no queue; use append-log, " in capsys.readouterr().err
