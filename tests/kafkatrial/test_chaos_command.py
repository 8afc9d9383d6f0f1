"""`kafkatrial chaos`: invalid options, the list of findings, the printed options, one round, an interrupted round."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from chaos.live.campaign import Plan
from chaos.live.findings import FINDINGS
from fixtures.disk.kinds import DiskKind
from kafkatrial.__main__ import exit_code
from kafkatrial.chaos_tables import options_of
from kafkatrial.exit_codes import ExitCode
from linearizability.history.reader import open_history

pytestmark = pytest.mark.sampled(2)

COMMAND = (sys.executable, "-m", "kafkatrial", "chaos")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--minutes", "0"], "--minutes: 0 is not a positive number of minutes"),
        (["--fault", "kil"], "--fault: there is no kind of fault 'kil'; did you mean kill?"),
        (["--target", "referense"], "referense: unknown target; did you mean reference?"),
        (["--disk", "ext3"], "--disk: there is no kind of disk 'ext3'; there are fuse, ext4, xfs"),
        (["--show", "deposed"], "deposed: no finding of that name; did you mean deposed-leader?"),
        (["--find", "deposed"], "deposed: no finding of that name; did you mean deposed-leader?"),
        (["--again", "nowhere"], "nowhere: not the directory of a saved failure: it has no failure.json"),
        (["--show", "deposed-leader", "--seed", "0"], "--show runs a saved round and cannot be combined with --seed"),
        (
            ["--again", "nowhere", "--rounds", "2", "--json", "--fault", "kill", "--minutes", "1", "--show", "list"],
            "--again runs a saved round and cannot be combined with --minutes, --rounds, --fault, --show, --json",
        ),
        (["--show", "deposed-leader", "--history-topic", "t", "--live"], "--show runs a saved round"),
        (["--target", "simulation"], "simulation: faults need a cluster of processes that is started for the round"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(words, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert exit_code(["chaos", *words]) is ExitCode.USAGE
    message = capsys.readouterr().err.strip()
    assert message.startswith(f"kafkatrial: {line}")
    assert "\n" not in message


def test_the_findings_are_listed(capsys):
    assert exit_code(["chaos", "--show", "list"]) is ExitCode.OK
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FINDINGS)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, "--target reference --seed 7"),
        ({"disk": DiskKind.XFS}, "--target reference --seed 7 --disk xfs"),
        ({"kinds": ("kill", "cut")}, "--target reference --seed 7 --fault kill --fault cut"),
        (
            {"kinds": FINDINGS["too-few-in-sync"].kinds, "sought": FINDINGS["too-few-in-sync"]},
            "--target reference --seed 7 --find too-few-in-sync",
        ),
    ],
)
def test_the_printed_options_generate_the_same_rounds_again(chosen, words, tmp_path):
    assert options_of(Plan(("reference",), 7, tmp_path, tmp_path, **chosen)) == words


def start(tmp_path, *words):
    return subprocess.Popen(
        [*COMMAND, *words, "--out", str(tmp_path / "out")],
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "140", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_round_of_kills_on_the_reference_cluster(tmp_path):
    """Seed 0 kills and shuts nodes down. No record that was acknowledged with acks=all is lost."""
    session = start(tmp_path, "--seed", "0", "--fault", "kill", "--shrink-minutes", "0")
    output, _ = session.communicate(timeout=150)
    assert session.returncode == ExitCode.OK, output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    (round_summary,) = summary["rounds"]
    assert summary["faults"]["Kill"] > 0
    assert round_summary["acknowledged"] > 50
    assert round_summary["verdict"] == "ok"
    history = open_history(tmp_path / "out" / "reference-0")
    assert {row["kind"] for row in history.table("faults").to_pylist()} == {"kill"}
    assert (tmp_path / "out" / "reference-0" / "brokers" / "1" / "broker.log").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_heals_all_faults_keeps_the_history_and_leaves_no_process(tmp_path, number):
    session = start(tmp_path, "--seed", "0", "--fault", "kill")
    lines = []
    for line in session.stdout:
        lines.append(line)
        if line.startswith("  Timed("):
            break
    children = psutil.Process(session.pid).children(recursive=True)
    assert len(children) >= 3, lines
    session.send_signal(number)
    output, _ = session.communicate(timeout=60)
    assert session.returncode == ExitCode.INTERRUPTED, "".join(lines) + output
    assert "interrupted; all faults are healed" in output
    deadline = time.monotonic() + 10
    while any(child.is_running() for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [child for child in children if child.is_running()] == []
    history = open_history(tmp_path / "out" / "reference-0")
    assert history.run.complete is False
    assert history.table("operations").num_rows > 20
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["complete"] is False
