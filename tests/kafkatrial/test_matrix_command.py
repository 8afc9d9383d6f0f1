"""`kafkatrial matrix`: runs of several machines, the files it writes, and invalid input."""

import json
from dataclasses import replace

import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from reports.results import write_results
from tests.reports.conftest import sample_results


@pytest.fixture
def machines(tmp_path, monkeypatch):
    """Set a working directory with two runs of one machine and one of another; return the directory."""
    monkeypatch.chdir(tmp_path)
    sample = sample_results()
    for name, day in (("laptop/runs/a", 1), ("laptop/runs/b", 2), ("server", 3)):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        (directory / "histories").mkdir()
        write_results(replace(sample, started_at=f"2026-11-0{day}T00:00:00+00:00", seed=day), directory)
    return tmp_path


def test_runs_of_several_machines_are_one_matrix(machines, capsys):
    arguments = ["matrix", "laptop", "server", "laptop/runs/a", "--out", "site"]
    assert exit_code(arguments) is ExitCode.OK
    assert "reference           MUST: 1 violation, 1 unknown, 1 ok, 1 not applicable\n" in capsys.readouterr().out
    names = {"matrix.html", "matrix.md", "badge-reference.json", "badge-apache-kafka-4.3.1.json"}
    assert {path.name for path in (machines / "site").iterdir()} == names
    markdown = (machines / "site" / "matrix.md").read_text()
    assert "6 requirements, 2 targets, 3 runs from `2026-11-01` to `2026-11-03`." in markdown
    assert "kafkatrial matrix laptop server laptop/runs/a --out site" in markdown
    badge = json.loads((machines / "site" / "badge-reference.json").read_text())
    assert badge["message"] == "1 of 3 MUST"


def test_an_existing_directory_keeps_its_other_files(machines):
    (machines / "docs").mkdir()
    (machines / "docs" / "guide.md").write_text("mine")
    (machines / "docs" / "matrix.md").write_text("of yesterday")
    assert exit_code(["matrix", "server", "--latest", "--out", "docs"]) is ExitCode.OK
    assert (machines / "docs" / "guide.md").read_text() == "mine"
    assert "kafkatrial matrix server --latest --out docs" in (machines / "docs" / "matrix.md").read_text()


def test_without_out_the_matrix_is_written_to_the_reports_directory(machines):
    assert exit_code(["matrix", "server"]) is ExitCode.OK
    (made,) = (machines / ".kafkatrial" / "reports").iterdir()
    assert (made / "matrix.html").is_file()


def test_requests_and_responses_of_a_violation_are_shown_if_they_were_saved(machines):
    kept = machines / "server" / "failures" / "1"
    kept.mkdir(parents=True)
    (kept / "steps.txt").write_bytes(b"1. Fetch()\n   error <b>NONE</b> \x1b[31m \xff\n")
    assert exit_code(["matrix", "server", "--out", "site"]) is ExitCode.OK
    page = (machines / "site" / "matrix.html").read_text()
    assert "1. Fetch()\n   error &lt;b&gt;NONE&lt;/b&gt; \\x1b[31m" in page


def damage_results(machines, damage):
    results = machines / "server" / "results.json"
    match damage:
        case "truncated":
            results.write_bytes(results.read_bytes()[:-100])
        case "another version":
            results.write_text(
                results.read_text().replace('"format": 1', '"format": 2').replace('"format":1', '"format":2')
            )
        case "a directory":
            results.unlink()
            results.mkdir()
        case "no object":
            results.write_text("[]")
        case "missing":
            results.unlink()


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        ("truncated", "server/results.json: not a results file of format 1: "),
        ("another version", "server/results.json: not a results file of format 1: format: "),
        ("a directory", "server/results.json: a directory, not a regular file"),
        ("no object", "server/results.json: not a results file of format 1: "),
        ("missing", "server: not a run directory: it holds no results.json of `kafkatrial run`"),
    ],
)
def test_damaged_results_are_reported_in_one_line_and_nothing_is_written(machines, capsys, damage, line):
    damage_results(machines, damage)
    assert exit_code(["matrix", "laptop", "server", "--out", "site"]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert not (machines / "site").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        (["server/results.json"], "server/results.json: not a run directory"),
        ([], "Missing argument 'RUN_DIR'"),
        (["server", "--out", "server/results.json"], "cannot make the directory server/results.json: File exists"),
    ],
)
def test_invalid_input_is_reported_in_one_line(machines, capsys, arguments, line):
    assert exit_code(["matrix", *arguments]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
