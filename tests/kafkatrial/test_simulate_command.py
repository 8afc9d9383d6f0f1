"""`kafkatrial simulate`: invalid options, output, files and exit codes; equal events for equal seeds."""

import json
import os
import subprocess
import sys

import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode

pytestmark = pytest.mark.sampled(2)

DEFECT = "acknowledge-before-replication"


def simulate(directory, *words, hash_seed="0"):
    return subprocess.run(
        [sys.executable, "-m", "kafkatrial", *words],
        cwd=directory,
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "COLUMNS": "140"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--seeds", "five"], "kafkatrial: --seeds: five is neither a range like 0..999 nor a seed"),
        (["--seeds", "9..3"], "kafkatrial: --seeds: 9..3 is empty; the first seed is above the last"),
        (["--seeds", "-3"], "kafkatrial: --seeds: -3 is neither a range like 0..999 nor a seed"),
        (["--seeds", f"0..{2**63}"], f"kafkatrial: --seeds: 0..{2**63} is beyond 2^63 - 1"),
        (["--minutes", "0"], "kafkatrial: --minutes: 0 is not a positive number of minutes"),
        (["--minutes", "nan"], "kafkatrial: --minutes: nan is not a positive number of minutes"),
        (
            ["--defect", "nope"],
            "kafkatrial: there is no defect 'nope'; `kafkatrial sensitivity --list` has their names",
        ),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(words, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert exit_code(["simulate", *words]) is ExitCode.USAGE
    assert capsys.readouterr().err.strip() == line


def test_a_damaged_saved_failure_is_reported_in_one_line(capsys, tmp_path):
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "failure.json").write_text("{")
    assert exit_code(["simulate", "--seeds", "1", "--out", str(tmp_path)]) is ExitCode.USAGE
    assert "failure.json: not a saved trial: it is not JSON" in capsys.readouterr().err


def test_an_unwritable_failure_directory_is_rejected_before_anything_runs(capsys, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    for out in (taken, taken / "below"):
        assert exit_code(["simulate", "--seeds", "1", "--out", str(out)]) is ExitCode.USAGE
        output = capsys.readouterr()
        assert output.err.strip() == f"kafkatrial: {out}: a failure cannot be saved there: {taken} is not a directory"
        assert not output.out


def test_two_processes_with_different_hash_seeds_have_the_same_events(tmp_path):
    words = ("simulate", "--seeds", "0..11", "--digests", "--json", "--keep-going")
    one, other = (
        json.loads(simulate(tmp_path / name, *words, hash_seed=name).stdout)
        for name in _make_directories(tmp_path, "1", "2")
    )
    assert len(set(one["digests"].values())) == 12
    for varying in ("seconds", "seeds_per_s", "virtual_over_real", "events_per_s", "directory"):
        for summary in (one, other, *one["counterexamples"], *other["counterexamples"]):
            summary.pop(varying, None)
    assert one == other


def _make_directories(tmp_path, *names):
    for name in names:
        (tmp_path / name).mkdir()
    return names


def test_a_seed_prints_its_whole_trial_and_the_figures(tmp_path):
    done = simulate(tmp_path, "simulate", "--seeds", "4")
    assert done.stdout.startswith("seed 4, 1 worker, stops after 1 failing, defect: none\nTrial(\n")
    for word in ("Seeds/s", "times real time", "Reached", "Never reached"):
        assert word in done.stdout
    assert not done.stderr


def test_a_violation_is_kept_with_program_diagram_and_history_and_runs_first_the_next_time(tmp_path):
    done = simulate(tmp_path, "simulate", "--seeds", "0..20", "--defect", DEFECT)
    assert done.returncode == ExitCode.VIOLATION, done.stderr
    assert "Reproduce: kafkatrial simulate --seeds " in done.stdout
    (kept,) = (tmp_path / ".kafkatrial" / "simulation" / "failures").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["diagram.html", "failure.json", "history", "program.py"]
    page = (kept / "diagram.html").read_text()
    assert "<svg" in page
    assert "http://" not in page
    judged = simulate(tmp_path, "check", "--json", str(kept / "history"))
    assert json.loads(judged.stdout)["operations"] > 0

    again = simulate(tmp_path, "simulate", "--seeds", "0..20", "--defect", DEFECT)
    assert again.returncode == ExitCode.VIOLATION
    assert "still fails" in again.stdout
    assert "Seeds/s" not in again.stdout
