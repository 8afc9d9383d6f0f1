"""Spark sessions: errors in one line, the class archive of the JVM, settings, and the log for the output of Spark."""

import os
import subprocess
import sys
import textwrap

import pytest

from linearizability.cache import move_into_cache
from reports.spark.archive import archive_options, make_archive, spark_archive

pytestmark = [pytest.mark.spark, pytest.mark.sampled(3)]

OLD_JAVA = """#!/bin/sh
case "$*" in
  *-version*) echo 'openjdk version "11.0.2" 2019-01-15' >&2 ;;
  *) echo 'Error: LinkageError occurred while loading main class org.apache.spark.launcher.Main' >&2
     echo '	java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main: class file version 61.0' >&2
     exit 1 ;;
esac
"""


def output_of(program, environment):
    """Run a program in a new process and return its output. If the session cannot start, the output is the error."""
    source = f"""
        from pathlib import Path
        from reports.spark.errors import EngineFailedError, EngineUnavailableError
        from reports.spark.session import spark_session
        try:
            {program}
        except EngineUnavailableError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "output of Spark reached the terminal"
    return done.stdout


def test_java_that_is_too_old_is_named(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(OLD_JAVA)
    java.chmod(0o755)
    line = output_of("spark_session('local[1]').__enter__()", {"JAVA_HOME": str(tmp_path)})
    assert line == f'Spark needs Java 17 or newer, and {java} is openjdk version "11.0.2" 2019-01-15\n'


def test_class_archive_is_used_if_it_exists_and_belongs_to_this_java(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = spark_archive().path
    assert archive_options() == []
    path.parent.mkdir(parents=True)
    path.write_bytes(b"written by another program")
    assert archive_options() == []
    draft = tmp_path / "draft"
    draft.touch()
    move_into_cache(draft, path)
    assert f'"-XX:SharedArchiveFile={path}"' in archive_options()
    assert make_archive() == path
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert spark_archive().path != path


def test_session_with_user_settings_a_log_and_a_broken_archive(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spark_archive().path.parent.mkdir(parents=True)
    (tmp_path / "draft").write_bytes(b"no archive")
    move_into_cache(tmp_path / "draft", spark_archive().path)
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 3\nspark.app.name theirs\n")
    log = tmp_path / "spark.log"
    program = f"""with spark_session("local[1]", {{"spark.app.name": "given"}}, Path({str(log)!r})) as spark:
                names = ("spark.sql.shuffle.partitions", "spark.app.name", "spark.ui.enabled")
                print(*(spark.conf.get(name) for name in names))
            try:
                with spark_session("local[1]", log=Path({str(log)!r})):
                    raise EngineFailedError("Spark: no room")
            except EngineFailedError as error:
                print(error)"""
    assert output_of(program, {"SPARK_CONF_DIR": str(tmp_path)}) == f"3 given false\nSpark: no room (more in {log})\n"
    assert log.stat().st_size


def test_jvm_that_is_killed_is_reported_in_one_line(tmp_path):
    program = """
            import threading
            import time
            import psutil
            from reports.spark.errors import EngineFailedError, spark_errors
            try:
                with spark_session("local[1]") as spark, spark_errors():
                    (java,) = [child for child in psutil.Process().children(recursive=True) if child.name() == "java"]
                    tracker = spark.sparkContext.statusTracker()
                    def kill():
                        while not tracker.getActiveStageIds():
                            time.sleep(0.05)
                        java.kill()
                    threading.Thread(target=kill).start()
                    spark.range(10**13).selectExpr("sum(id)").collect()
            except EngineFailedError as error:
                print(error)"""
    assert output_of(program, {}) == "Spark: Spark's JVM has ended\n"
