"""`kafkatrial report`: one run, two compared runs, many runs as a trend, and invalid input."""

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from linearizability.history.run import RunInfo
from reports.jobs.report import TABLES

pytestmark = pytest.mark.sampled(3)

EXAMPLES = Path(__file__).parents[2] / "examples" / "histories"


@pytest.fixture(scope="module")
def report_of_one_run(tmp_path_factory):
    """Write the report of a run with a violation; return its directory."""
    out = tmp_path_factory.mktemp("reports") / "one"
    assert exit_code(["report", str(EXAMPLES / "lost-write"), "--out", str(out)]) is ExitCode.VIOLATION
    return out


def test_a_report_consists_of_a_page_and_tables(report_of_one_run):
    assert {path.name for path in report_of_one_run.iterdir()} == {"report.html", "tables"}
    names = {f"{table.name}.{suffix}" for table in TABLES for suffix in ("parquet", "csv")}
    assert {path.name for path in (report_of_one_run / "tables").iterdir()} == names


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables_are_written_with_the_documented_schema_in_both_forms(report_of_one_run, table):
    written = pq.read_table(report_of_one_run / "tables" / f"{table.name}.parquet")
    assert written.schema == table.schema
    types = {field.name: field.type for field in table.schema}
    options = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    text = pa_csv.read_csv(report_of_one_run / "tables" / f"{table.name}.csv", convert_options=options)
    assert text.schema.names == written.schema.names
    assert text.num_rows == written.num_rows


def test_the_page_is_small_and_self_contained_and_has_the_anomalies(report_of_one_run):
    page = (report_of_one_run / "report.html").read_text(encoding="utf-8")
    assert len(page) < 150_000
    assert not re.search(r'(src|href)="(?!#|tables/)|@import|url\(', page)
    for text in ("lost-write", "Latency of produce", "Consumer lag", "Leaders and in-sync replicas", "tables/runs.csv"):
        assert text in page
    for link in re.findall(r'<a href="(tables/[^"]+)"', page):
        assert (report_of_one_run / link).is_file()


def test_two_runs_are_compared_in_the_given_order(tmp_path, capsys):
    names = ("lost-write", "clean")
    ids = [RunInfo.read(EXAMPLES / name).run_id for name in names]
    out = tmp_path / "report"
    assert exit_code(["report", *(str(EXAMPLES / name) for name in names), "--out", str(out)]) is ExitCode.VIOLATION
    trend = pq.read_table(out / "tables" / "trend.parquet").to_pylist()
    assert list(dict.fromkeys(row["run_id"] for row in trend)) == ids
    moved = {row["figure"]: row["moved"] for row in trend if row["run_id"] == ids[1]}
    assert moved["lost-write (violation)"] == "better"
    shown = capsys.readouterr().out
    assert str(out / "report.html") in shown
    assert "lost-write (violation)" in shown


def test_a_directory_of_several_runs_is_a_trend(tmp_path, capsys):
    rounds = tmp_path / "chaos"
    for number in range(4):
        shutil.copytree(EXAMPLES / "clean", rounds / f"round-{number}")
        run = RunInfo.read(rounds / f"round-{number}")
        RunInfo(f"round-{number}", target=run.target, complete=number < 3).write(rounds / f"round-{number}")
    (rounds / "summary.json").write_text("{}")
    out = tmp_path / "report"
    assert exit_code(["report", str(rounds), "--out", str(out)]) is ExitCode.INCONCLUSIVE
    runs = pq.read_table(out / "tables" / "runs.parquet")
    assert runs["run_id"].to_pylist() == [f"round-{number}" for number in range(4)]
    assert runs["complete"].to_pylist() == [True] * 3 + [False]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('class="spark"') > 10
    assert page.count("<h3>Over time</h3>") == 1
    assert "ended on its own" in capsys.readouterr().out


def test_runs_of_one_directory_are_distinguished_by_their_path(tmp_path):
    for target in ("reference", "apache-kafka-4.3.1"):
        shutil.copytree(EXAMPLES / "clean", tmp_path / "run" / "histories" / target / "a-requirement")
    (tmp_path / "run" / "results.json").touch()
    out = tmp_path / "report"
    assert exit_code(["report", str(tmp_path / "run"), "--out", str(out)]) is ExitCode.OK
    names = pq.read_table(out / "tables" / "runs.parquet")["run_id"].to_pylist()
    assert names == ["apache-kafka-4.3.1/a-requirement", "reference/a-requirement"]


def broken_run(tmp_path, damage):
    """Return the directory of a run with this damage."""
    run_dir = tmp_path / "run"
    shutil.copytree(EXAMPLES / "lost-write", run_dir)
    records = run_dir / "history" / "records.parquet"
    match damage:
        case "cut short":
            records.write_bytes(records.read_bytes()[:-9])
        case "a column less":
            pq.write_table(pq.read_table(records).drop_columns("intact"), records)
        case "values twice":
            table = pq.read_table(records)
            ones = pa.array([1] * table.num_rows, pa.int64())
            pq.write_table(table.set_column(table.column_names.index("value"), "value", ones), records)
        case "no operations":
            (run_dir / "history" / "operations.parquet").unlink()
    return run_dir


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        ("cut short", "records.parquet: not a readable Parquet file"),
        ("a column less", "records.parquet: table records has no column intact"),
        ("values twice", "to the same partition"),
        ("no operations", "nothing to report: its history has no operations"),
    ],
)
def test_a_broken_run_is_reported_in_one_line_and_leaves_no_files(tmp_path, capsys, damage, line):
    out = tmp_path / "report"
    assert exit_code(["report", str(broken_run(tmp_path, damage)), "--out", str(out)]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        (["empty"], "empty: not a run directory"),
        (["history.ndjson"], "history.ndjson: not a run directory; convert the file with `kafkatrial export`"),
        (["clean", "clean"], "clean: named twice"),
        (["clean", "copy"], "run ids in a report must be unique"),
        (["clean", "--master", "local[2]"], "--master and --spark-conf need --engine spark"),
        (["clean", "--engine", "spark", "--memory-limit", "100"], "--memory-limit needs --engine local"),
        (["clean", "--out", "copy"], "the report directory copy is not empty"),
    ],
)
def test_invalid_input_is_reported_in_one_line(tmp_path, capsys, monkeypatch, words, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "history.ndjson").touch()
    for name in ("clean", "copy"):
        shutil.copytree(EXAMPLES / "clean", tmp_path / name)
    assert exit_code(["report", *words]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert not list(tmp_path.glob(".kafkatrial/reports/*"))


@pytest.mark.spark
def test_a_master_that_does_not_respond_is_reported_in_one_line(tmp_path, capsys):
    out = tmp_path / "report"
    words = ["--engine", "spark", "--master", "spark://127.0.0.1:1", "--out", str(out)]
    assert exit_code(["report", str(EXAMPLES / "clean"), *words]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert "does not respond" in message
    assert not out.exists()


@pytest.mark.spark
def test_spark_reports_a_run(report_of_one_run, tmp_path):
    out = tmp_path / "report"
    words = ["--engine", "spark", "--master", "local[2]", "--out", str(out)]
    assert exit_code(["report", str(EXAMPLES / "lost-write"), *words]) is ExitCode.VIOLATION
    assert {path.name for path in (out / "tables").iterdir()} == {
        path.name for path in (report_of_one_run / "tables").iterdir()
    }
    assert "lost-write" in (out / "report.html").read_text(encoding="utf-8")
