"""Invalid Spark options: one line and exit code 4, before any JVM starts."""

from pathlib import Path

import pytest

from kafkatrial.__main__ import exit_code

RUN = str(Path(__file__).parents[2] / "examples" / "histories" / "clean")
BROKER = ["--history-topic", "t", "--history-bootstrap", "127.0.0.1:9"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["check", RUN, "--master", "local[2]"], "--master and --spark-conf need --engine spark"),
        (
            ["check", RUN, "--engine", "spark", "--master", "mesos://a"],
            "mesos://a: not a Spark master; known are local[*]",
        ),
        (["check", RUN, "--engine", "spark", "--spark-conf", "ui=true"], "--spark-conf ui=true: not spark.NAME=VALUE"),
        (
            ["collect", "{tmp}", *BROKER, "--master", "sc://spark..local:9"],
            "sc://spark..local:9: the master does not respond: spark..local:9: not a host name",
        ),
        (
            ["collect", "{tmp}", *BROKER, "--master", "sc://127.0.0.1:9"],
            "sc://127.0.0.1:9: the master does not respond",
        ),
        (["spark-job", "/dev/null/job"], "/dev/null/job: cannot be written: Not a directory"),
    ],
)
@pytest.mark.spark
def test_invalid_option_is_reported_in_one_line(words, line, tmp_path, capfd):
    assert exit_code([word.replace("{tmp}", str(tmp_path)) for word in words]) == 4
    error = capfd.readouterr().err
    assert error.startswith(f"kafkatrial: {line}")
    assert error.count("\n") == 1


def test_job_for_spark_submit_is_two_files_and_the_command_to_run_them(tmp_path, capsys):
    assert exit_code(["spark-job", str(tmp_path / "job")]) == 0
    code, program = sorted((tmp_path / "job").iterdir())
    assert capsys.readouterr().out == f"spark-submit --py-files {code} {program} RUN…\n"
