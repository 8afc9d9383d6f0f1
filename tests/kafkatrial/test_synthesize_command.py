"""`kafkatrial synthesize`: a history that `check` judges, and the list of its planted anomalies."""

import json

import pytest

from kafkatrial.app import run_command
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode


def test_planted_anomalies_are_listed_and_detected(tmp_path, capsys):
    plants = ["--plant", "lost-write", "--plant", "duplicate", "--plant", "duplicate"]
    words = ["synthesize", "--records", "4000", "--partitions", "3", *plants, str(tmp_path / "run")]
    assert run_command(words) == ExitCode.OK
    assert capsys.readouterr().out.endswith("in 3 partitions; planted: lost-write, duplicate (2)\n")
    assert run_command(["check", "--json", str(tmp_path / "run")]) == ExitCode.VIOLATION
    judgement = json.loads(capsys.readouterr().out)
    counts = {anomaly["name"]: anomaly["count"] for anomaly in judgement["anomalies"]}
    assert counts == {"lost-write": 1, "duplicate": 2}


def test_unknown_anomaly_is_rejected_with_the_valid_names(tmp_path):
    with pytest.raises(UsageError, match="there is no anomaly 'lost' to plant; there are lost-write, "):
        run_command(["synthesize", "--records", "10", "--plant", "lost", str(tmp_path / "run")])
    assert not (tmp_path / "run").exists()
