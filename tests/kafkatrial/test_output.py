"""Output: data with control characters, long texts, limited encodings, readers that end early, unusable streams."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from kafkatrial import errors
from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from linearizability.history.layout import table_files
from linearizability.history.schema import SCHEMAS
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict
from linearizability.printable import TEXT_MAX, cut, one_line, printable
from reports.console import DataConsole, encodable
from reports.html import render_html
from reports.junit import write_junit
from reports.results import (
    Difference,
    Finding,
    RequirementInfo,
    Results,
    TargetInfo,
    read_results,
    write_results,
)
from reports.terminal import as_text, render_judgement, render_results

pytestmark = pytest.mark.sampled(3)

EXAMPLES = Path(__file__).parents[2] / "examples" / "histories"
HOSTILE = [
    "\x1b[2J\x1b]8;;http://localhost\x07link",
    "[bold red]x[/] [/nothing] [link=http://localhost]y[/link]",
    "\x9b31m\x85\x00\r\x7f",
    "\u202egnp.exe\u2066\u200f",
    "\ud800 \udfff \ufffe \U000e0041",
    "a\u2028b\u2029c",
    ":warning: {{ 7 * 7 }} <script>",
]
CHARACTERS = st.one_of(st.characters(), st.sampled_from("\x1b\x9b\r\n\t[]/\u202e\ud800\u2028"))
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(CHARACTERS, max_size=60))
CONTROL_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COMMAND = [sys.executable, "-m", "kafkatrial"]


@settings(max_examples=30)
@given(TEXTS)
def test_printable_text_has_no_control_characters_and_is_idempotent(text):
    shown = printable(text)
    assert not CONTROL_CHARACTER.search(shown)
    assert printable(shown) == shown
    shown.encode()
    assert not re.search(r"[\n\t]", one_line(text))


def test_long_text_is_cut_with_a_mark():
    long = "\x1b" * 50_000_000
    for shorten in (printable, one_line, cut):
        assert len(shorten(long)) < 4 * TEXT_MAX + 100
        assert shorten(long).endswith(f"({50_000_000 - TEXT_MAX:,} more characters)")
    assert cut("x" * TEXT_MAX) == printable("x" * TEXT_MAX) == "x" * TEXT_MAX


@settings(max_examples=30)
@given(TEXTS)
def test_a_console_prints_neither_markup_nor_control_characters(text):
    file = io.StringIO()
    console = DataConsole(file=file, width=500, color_system="truecolor", force_terminal=True)
    table = Table(box=None)
    table.add_column(text)
    table.add_row(text)
    console.print(text, Text(text, "bold"), table)
    written = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())  # our own styles
    assert not CONTROL_CHARACTER.search(written)
    if text in HOSTILE[1:2]:
        assert written.count(text) == 4
    assert "\x1b]8" not in file.getvalue()


def hostile_results(text, complete=True):
    evidence = Evidence((1,), text, 0, 1, 2, text)
    judgement = Judgement(1, 1, (Anomaly("lost-write", Verdict.VIOLATION, 1, (evidence,)),))
    difference = Difference("b", "major", 1, text, text)
    finding = Finding(
        Verdict.VIOLATION,
        requirement="area/one",
        target="a",
        reason=text,
        expected=text,
        actual=text,
        program=text,
        judgement=judgement,
        differences=(difference,),
    )
    targets = (TargetInfo("a", 1, {"kafka": text}, 1.0), TargetInfo("b"))
    requirements = (RequirementInfo("area/one", "MUST", text),)
    return Results("1", "2026-01-01T00:00:00+00:00", 7, "ci", targets, requirements, (finding,), complete=complete)


@settings(max_examples=30)
@given(TEXTS)
def test_every_report_of_a_run_escapes_texts_of_brokers(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("reports")
    results = hostile_results(text)
    for shown in (as_text(render_results(results, folder)), render_html(results)):
        assert not CONTROL_CHARACTER.search(shown)
        shown.encode()
    root = ET.parse(write_junit(results, folder)).getroot()
    for element in root.iter():
        assert not any(CONTROL_CHARACTER.search(value) for value in (element.text or "", *element.attrib.values()))


@settings(max_examples=30)
@given(TEXTS)
def test_a_judgement_is_escaped_on_the_terminal_and_unchanged_in_json(text):
    anomaly = Anomaly("lost-write", Verdict.VIOLATION, 1, (Evidence((1,), text, 0, 1, 2, text),))
    judgement = Judgement(1, 1, (anomaly,), (text,))
    assert not CONTROL_CHARACTER.search(as_text(render_judgement(judgement)))
    assert json.loads(json.dumps(judgement.as_json()))["anomalies"][0]["evidence"][0]["topic"] == text


@pytest.mark.parametrize("text", [*HOSTILE, "long " * 1_000_000])
def test_an_error_is_one_short_line(capsys, text, tmp_path):
    for error in (errors.UsageError(text), RuntimeError(text)):
        errors.report(error, tmp_path)
        (line,) = capsys.readouterr().err.splitlines()
        assert not CONTROL_CHARACTER.search(line)
        assert len(line) < 20_000
    assert exit_code(["check", f"nowhere-{text[:100]}".replace("\0", "")]) is ExitCode.USAGE
    assert not CONTROL_CHARACTER.search(capsys.readouterr().err.rstrip("\n"))


def test_results_with_long_texts_make_small_reports(tmp_path):
    results = hostile_results("x" * 500_000)
    write_results(results, tmp_path)
    (kept,), (finding,) = read_results(tmp_path).outcomes, results.outcomes
    assert (kept.reason, kept.program) == (finding.reason, finding.program)  # only evidence is shortened
    assert len(kept.judgement.anomalies[0].evidence[0].text) < TEXT_MAX + 100
    results = hostile_results("\x1b" * 100_000)
    assert len(as_text(render_results(results, tmp_path))) < 1_500_000


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "✔ é \u2713"), ("latin-1", "+ é \\u2713"), ("ascii", "+ \\xe9 \\u2713")]
)
def test_characters_that_an_encoding_lacks_are_replaced(encoding, shown):
    assert encodable("✔ é \u2713", encoding) == shown


def run(*arguments, **environment):
    """Return the exit code, standard output and standard error of a command."""
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, check=False, timeout=300, env={**os.environ, **environment}
    )
    return done.returncode, done.stdout, done.stderr


def run_without_reader(*arguments):
    """Return the exit code and standard error of a command whose standard output is a pipe without a reader."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as pipe:
        done = subprocess.run([*COMMAND, *arguments], stdout=pipe, stderr=subprocess.PIPE, check=False, timeout=300)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
@pytest.mark.parametrize(
    ("arguments", "code"), [(["check", str(EXAMPLES / "lost-write")], 1), (["chaos", "--show", "list"], 0)]
)
def test_an_output_that_is_not_utf_8_is_complete(environment, arguments, code):
    returned, out, err = run(*arguments, **environment)
    assert (returned, err) == (code, b"")
    assert out


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", str(EXAMPLES / "clean")],
        ["check", "--models"],
        ["requirements", "--json"],
        ["chaos", "--show", "list"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_a_reader_that_ends_has_its_own_exit_code(arguments):
    assert run_without_reader(*arguments) == (ExitCode.OUTPUT_CLOSED, b"")


def test_a_run_whose_reader_ended_keeps_its_verdicts(tmp_path):
    requirement = "idempotence/duplicate-is-acknowledged-once"
    code, err = run_without_reader("run", "--target", "simulation", "--out", str(tmp_path / "run"), requirement)
    assert code == ExitCode.OUTPUT_CLOSED, err
    results = read_results(tmp_path / "run")
    assert (results.complete, results.exit_code) == (False, ExitCode.INTERRUPTED)


def test_a_reader_of_one_line_is_not_an_internal_error(tmp_path):
    requirement = "idempotence/duplicate-is-acknowledged-once"
    command = [*COMMAND, "run", "--target", "simulation", "--out", str(tmp_path / "run"), requirement]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (ExitCode.OUTPUT_CLOSED, b"")
    assert not (tmp_path / "run" / "internal-error.txt").exists()


@pytest.mark.parametrize("arguments", [["check"], ["report"], ["fuzz", "--replay"], ["run", "--expectations"]], ids=str)
def test_a_path_that_is_too_long_is_reported_in_one_line(arguments, capsys):
    assert exit_code([*arguments, "a" * 5_000]) is ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "File name too long" in line
    assert len(line) < 1_500


def test_a_picture_is_not_written_to_a_fifo(tmp_path, capsys):
    os.mkfifo(tmp_path / "picture.html")
    code = exit_code(["check", str(EXAMPLES / "lost-write"), "--picture", str(tmp_path / "picture.html")])
    assert code is ExitCode.USAGE
    assert "a FIFO, not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--version"], ["doctor"], ["check", "nowhere"], ["broker", "--nodes", "1"]])
@pytest.mark.parametrize(("streams", "problem"), [(">&-", "closed"), ("1</dev/null <&-", "open for reading only")])
def test_a_standard_output_that_cannot_be_written_is_reported_in_one_line(arguments, streams, problem):
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND, *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False, timeout=300)
    assert done.returncode == ExitCode.INTERNAL
    assert done.stderr.decode().splitlines() == [f"kafkatrial: cannot write: standard output is {problem}"]


def test_no_file_gets_the_descriptor_of_a_closed_standard_error(tmp_path):
    code = "import os; from kafkatrial.output import output_problem as p; print(p(), os.readlink('/proc/self/fd/2'))"
    command = ["sh", "-c", 'exec "$@" 2>&- <&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == b"None /dev/null\n"


@pytest.mark.parametrize(
    "arguments", [["check", "--json", str(EXAMPLES / "clean")], ["broker", "--help"], ["--version"]]
)
def test_a_full_disk_under_standard_output_is_reported_in_one_line(arguments):
    command = [*COMMAND, *arguments]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=300)
    assert done.returncode == ExitCode.INTERNAL
    assert done.stderr.decode().splitlines() == ["kafkatrial: cannot write: No space left on device"]


def test_a_topic_name_from_a_history_does_not_reach_the_terminal(tmp_path, capsys):
    path = Path(shutil.copytree(EXAMPLES / "lost-write", tmp_path / "run"))
    for file in (path / "history").rglob("*.parquet"):
        table = pq.read_table(file, partitioning=None)
        if "topic" in table.column_names:
            names = pa.array([None if name is None else f"{name}\x1b[2J[/red]" for name in table["topic"].to_pylist()])
            pq.write_table(table.set_column(table.column_names.index("topic"), "topic", names), file)
    code = exit_code(["check", str(path), "--picture", str(tmp_path / "picture.html")])
    shown = capsys.readouterr()
    assert code is ExitCode.VIOLATION, shown
    assert not CONTROL_CHARACTER.search(shown.out)
    assert "[2J[/red]" in shown.out
    assert not CONTROL_CHARACTER.search((tmp_path / "picture.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("in_every_row", [False, True])
def test_a_huge_error_text_in_a_history_is_shortened_or_rejected(tmp_path, capsys, in_every_row):
    path = Path(shutil.copytree(EXAMPLES / "lost-write", tmp_path / "run"))
    files = table_files(path / "history", "operations")
    table = pa.concat_tables(pq.read_table(file, partitioning=None).cast(SCHEMAS["operations"]) for file in files)
    for file in files:
        file.unlink()
    chosen = pa.array([0 if in_every_row or row == 5 else None for row in range(len(table))], pa.int32())
    long_errors = pa.DictionaryArray.from_arrays(chosen, pa.array(["X" * 50_000_000]))
    table = table.set_column(table.column_names.index("error"), "error", long_errors)
    pq.write_table(table, path / "history" / "operations.parquet")
    code = exit_code(["check", str(path)])
    shown = capsys.readouterr()
    assert code is (ExitCode.USAGE if in_every_row else ExitCode.VIOLATION)
    assert len(shown.out + shown.err) < 20_000
    if in_every_row:
        assert "column error" in shown.err
