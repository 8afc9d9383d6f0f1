"""Pictures of violations: their files, the links from a report, and `kafkatrial check --picture`."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.errors import UsageError
from kafkatrial.pictures import picture_failures, picture_histories
from linearizability.check import judge
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from reports.html import render_html, write_html
from reports.results import RequirementInfo, Results, TargetInfo

EXAMPLES = Path(__file__).parents[2] / "examples" / "histories"
NAME = "produce/acks-all-survives"


def failed_run(run_dir, example="lost-write", kept_as="produce-acks-all-survives"):
    """Write the files of a run with the violation of an example, and return the results of the run."""
    history = run_dir / "histories" / "apache-kafka-4.3.1" / kept_as
    shutil.copytree(EXAMPLES / example, history)
    failure = run_dir / "failures" / "1"
    failure.mkdir(parents=True)
    finding = Finding(
        Verdict.VIOLATION,
        requirement=NAME,
        target="apache-kafka:4.3.1",
        judgement=judge(history),
        failure_dir=f"elsewhere/{failure}",
    )
    requirement = RequirementInfo(NAME, "MUST", "What acks=all acknowledged is read.", ())
    target = TargetInfo("apache-kafka:4.3.1", 3, {}, 1.0)
    return Results("0", "2026-01-02T03:04:05+00:00", 1, "ci", (target,), (requirement,), (finding,))


@pytest.mark.parametrize("kept_as", ["produce-acks-all-survives", "another-of-its-family"])
def test_a_failure_of_a_run_has_a_picture_and_the_report_has_a_link_to_it(tmp_path, kept_as):
    results = failed_run(tmp_path, kept_as=kept_as)
    picture_failures(results, tmp_path)
    page = (tmp_path / "failures/1/picture.html").read_text(encoding="utf-8")
    assert "lost-write in orders-2 at offset 65" in page
    report = write_html(results, tmp_path).read_text(encoding="utf-8")
    assert 'href="failures/1/picture.html"' in report
    assert "picture.html" not in render_html(results)


def test_each_violation_has_a_separate_page(tmp_path):
    results = failed_run(tmp_path, "torn-transaction")
    picture_failures(results, tmp_path)
    titles = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / "failures/1").iterdir())]
    assert len(titles) == len([a for a in results.outcomes[0].judgement.anomalies if a.verdict == "violation"]) == 2
    assert all("orders-2 at offset 17" in title for title in titles)


def test_a_failure_without_a_history_has_no_picture(tmp_path):
    results = failed_run(tmp_path)
    shutil.rmtree(tmp_path / "histories")
    picture_failures(results, tmp_path)
    picture_failures(replace(results, outcomes=()), tmp_path)
    assert not list((tmp_path / "failures/1").iterdir())


def test_check_draws_a_violation_and_prints_the_path(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert exit_code(["check", str(EXAMPLES / "lost-write"), "--json", "--picture", str(page)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "violation"
    assert err == f"picture: {page}\n"
    assert "lost-write" in page.read_text(encoding="utf-8")


def test_check_of_a_log_draws_operations_that_are_not_linearizable(tmp_path):
    log, page = tmp_path / "log.txt", tmp_path / "page.html"
    lines = (":invoke\t:write\t1", ":ok\t:write\t1", ":invoke\t:read\tnil", ":ok\t:read\t2")
    log.write_text("".join(f"INFO  jepsen.util - 0\t{line}\n" for line in lines), encoding="utf-8")
    assert exit_code(["check", str(log), "--picture", str(page)]) == 1
    assert "read() -&gt; 2" in page.read_text(encoding="utf-8")


def test_without_a_violation_there_is_no_picture(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert exit_code(["check", str(EXAMPLES / "clean"), "--picture", str(page)]) == 0
    assert "no violation, no picture" in capsys.readouterr().err
    assert not page.exists()


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    histories = {"": EXAMPLES / "lost-write"}
    with pytest.raises(UsageError, match=r"cannot write the picture .*nowhere.page\.html: No such file"):
        picture_histories(tmp_path / "nowhere" / "page.html", histories, {"": judge(EXAMPLES / "lost-write")})
