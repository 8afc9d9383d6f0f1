"""Unfinished histories, runs and chaos sessions: their verdict is never ok; the missing part may have a violation."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from linearizability.check import judge, judge_history
from linearizability.finding import Finding
from linearizability.history.reader import open_history
from linearizability.history.run import RunInfo
from linearizability.judgement import Verdict
from linearizability.shards.engine import judge_in_shards
from linearizability.shards.running import run_here
from reports.html import render_html
from reports.junit import write_junit
from reports.results import RequirementInfo, Results, TargetInfo, write_results
from reports.terminal import as_text, render_results

EXAMPLES = Path(__file__).parents[2] / "examples" / "histories"


def example(path, name="clean", **run):
    shutil.copytree(EXAMPLES / name, path)
    replace(RunInfo.read(path), **run).write(path)
    return path


def results_of(judged, planned, *, complete=False):
    requirements = tuple(RequirementInfo(f"area/requirement-{number}", "MUST") for number in range(planned))
    outcomes = tuple(Finding(Verdict.OK, requirement=one.id, target="reference") for one in requirements[:judged])
    targets = (TargetInfo("reference"),)
    return Results("1", "2026-01-01T00:00:00+00:00", 7, "quick", targets, requirements, outcomes, complete=complete)


@pytest.mark.parametrize("judging", [judge, lambda path: judge_in_shards(open_history(path), run_here)])
@pytest.mark.parametrize(("name", "verdict"), [("clean", Verdict.UNKNOWN), ("lost-write", Verdict.VIOLATION)])
def test_an_unfinished_history_is_not_ok_on_any_engine(tmp_path, judging, name, verdict):
    judgement = judging(example(tmp_path / "run", name, complete=False))
    assert judgement.verdict is verdict
    assert [reason for reason in judgement.reasons if "unfinished" in reason]


def test_a_run_without_its_end_is_unfinished(tmp_path):
    run_file = example(tmp_path / "run") / "run.json"
    document = json.loads(run_file.read_text())
    del document["complete"]
    run_file.write_text(json.dumps(document))
    assert judge_history(open_history(tmp_path / "run")).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("options", [[], ["--model", "append-log"], ["--model", "committed-offset"]])
def test_check_of_an_unfinished_history_is_inconclusive(tmp_path, capsys, options):
    run = example(tmp_path / "run", complete=False)
    assert exit_code(["check", str(run), *options]) is ExitCode.INCONCLUSIVE
    assert "unfinished" in capsys.readouterr().out
    assert exit_code(["check", str(run), "--json", *options]) is ExitCode.INCONCLUSIVE
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "unknown"
    assert any("unfinished" in reason for reason in document["reasons"])


def test_an_unfinished_history_stays_unfinished_as_ndjson(tmp_path, capsys):
    run = example(tmp_path / "run", complete=False)
    assert exit_code(["export", str(run), str(tmp_path / "run.ndjson")]) is ExitCode.OK
    assert exit_code(["check", str(tmp_path / "run.ndjson")]) is ExitCode.INCONCLUSIVE
    assert "unfinished" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "report"])
def test_a_killed_run_is_unfinished_although_its_histories_are_complete(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    example(tmp_path / "run" / "histories" / "reference" / "area-requirement-1")
    write_results(results_of(21, 120), tmp_path / "run")
    assert exit_code([command, "run"]) is ExitCode.INCONCLUSIVE
    assert "unfinished: 21 of 120" in capsys.readouterr().out
    write_results(results_of(120, 120, complete=True), tmp_path / "run")
    assert exit_code([command, "run", *(["--out", "again"] if command == "report" else [])]) is ExitCode.OK


def test_a_run_that_was_killed_before_its_first_history_is_unfinished(tmp_path, capsys):
    write_results(results_of(3, 120), tmp_path)
    assert exit_code(["check", str(tmp_path), "--json"]) is ExitCode.INCONCLUSIVE
    assert json.loads(capsys.readouterr().out)["reasons"] == ["unfinished: 3 of 120 requirements judged"]
    assert exit_code(["report", str(tmp_path), "--out", str(tmp_path / "report")]) is ExitCode.INCONCLUSIVE
    assert "unfinished: 3 of 120 requirements judged" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "report"])
@pytest.mark.parametrize("summary", [None, {"complete": False, "rounds": [{}], "rounds_max": 4}])
def test_a_killed_chaos_session_is_inconclusive(tmp_path, capsys, monkeypatch, command, summary):
    monkeypatch.chdir(tmp_path)
    for seed, target in ((7, "reference"), (8, "apache-kafka:4.3.1")):
        name = f"{target.replace(':', '-')}-{seed}"
        example(tmp_path / "chaos" / name, run_id=name, seed=seed, target=target)
    if summary is not None:
        (tmp_path / "chaos" / "summary.json").write_text(json.dumps(summary))
    assert exit_code([command, "chaos"]) is ExitCode.INCONCLUSIVE
    shown = capsys.readouterr().out
    assert "unfinished: 1 of 4 rounds judged" in shown if summary else "the chaos session was killed" in shown


def test_a_violation_in_a_killed_session_stays_a_violation(tmp_path):
    example(tmp_path / "chaos" / "reference-7", "lost-write", seed=7, target="reference", complete=False)
    assert exit_code(["check", str(tmp_path / "chaos")]) is ExitCode.VIOLATION


def test_every_report_shows_the_progress_of_an_unfinished_run(tmp_path):
    results = results_of(21, 120)
    assert "unfinished: 21 of 120" in as_text(render_results(results, tmp_path))
    assert "unfinished: 21 of 120" in render_html(results)
    suite = ET.parse(write_junit(results, tmp_path)).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("errors")) == ("120", "99")
    assert len(suite.findall("testcase/error")) == 99
