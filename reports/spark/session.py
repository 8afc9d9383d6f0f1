"""A Spark session to judge in: the caller's if there is one, else one of our own that bothers nobody.

A local session listens on 127.0.0.1 only and has no UI; its JVM writes to a file, not to the terminal; its workers run
this interpreter. Whatever the user has set (spark-defaults.conf, PYSPARK_SUBMIT_ARGS, environment) wins over ours.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import linearizability
import reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS: Final = {
    "spark.app.name": "kafkatrial",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "16",
    # What tasks tell is bounded by the memory that there is, and by nothing else.
    "spark.driver.maxResultSize": "0",
    # Rows between our tasks are large: hundreds of kilobytes, not bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
}
_JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1"
"""For the JVM we start, which plans and carries, and computes little: a session is ready in half the time."""
_MEMORY_PART: Final = 4
"""That JVM may grow to a fourth of the memory: through it goes what tasks tell of millions of transactions."""
_OURS_LOCALLY: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


class EngineUnavailableError(Exception):
    """Spark cannot be used here; the message says what to install."""


@contextlib.contextmanager
def spark_session(master: str | None = None) -> Iterator["SparkSession"]:
    """A session on `master` (None: the running session, the user's configured master, or `local[*]`).

    A session that was already there is left running; one of ours is stopped. Raises EngineUnavailableError.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineUnavailableError("Spark is not installed: pip install 'kafkatrial[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None and master in (None, active.conf.get("spark.master", None)):
        yield active
        return
    if master is None or not master.startswith("sc://"):
        _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    session = _start(SparkSession, master)
    try:
        yield session
    finally:
        session.stop()


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else None
    if java is not None and not java.exists():
        raise EngineUnavailableError(f"Spark needs Java 17 or newer, and JAVA_HOME={home} has no bin/java")
    if java is None and shutil.which("java") is None:
        raise EngineUnavailableError("Spark needs Java 17 or newer: install one (Debian: openjdk-17-jre-headless)")


def _start(builder_of: Any, master: str | None) -> "SparkSession":
    from pyspark.errors import PySparkException

    with tempfile.TemporaryFile() as log:
        try:
            if master is not None and master.startswith("sc://"):
                session: SparkSession = builder_of.builder.remote(master).getOrCreate()
                return session
            with _stderr_to(log.fileno()), _jvm_options():
                session = _builder(builder_of, master).getOrCreate()
        except (PySparkException, OSError) as error:
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines() or [str(error)]
            raise EngineUnavailableError(f"Spark did not start (it needs Java 17 or newer): {said[-1]}") from None
    session.sparkContext.setLogLevel("ERROR")
    return session


def _builder(builder_of: Any, master: str | None) -> Any:
    from pyspark import SparkConf, SparkContext

    # The JVM reads spark-defaults.conf and PYSPARK_SUBMIT_ARGS when it starts; only then is it known what is set.
    SparkContext._ensure_initialized()
    theirs = SparkConf()
    chosen = master or theirs.get("spark.master") or "local[*]"
    settings = {**_OURS, **(_OURS_LOCALLY if chosen.startswith("local") else {})}
    settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(_code_paths())
    builder = builder_of.builder.master(chosen)
    for name, value in settings.items():
        if not theirs.contains(name):
            builder = builder.config(name, value)
    return builder


def _code_paths() -> list[str]:
    """Where workers find our packages, which in a wheel do not lie side by side."""
    folders = [str(Path(package.__path__[0]).parent) for package in (reports, linearizability)]
    return [*dict.fromkeys(folders), *filter(None, [os.environ.get("PYTHONPATH")])]


@contextlib.contextmanager
def _jvm_options() -> Iterator[None]:
    """Give a JVM that is started inside our options, where the user gives it none in the same way."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    ours = {"SPARK_SUBMIT_OPTS": _JVM_OPTIONS, "SPARK_DRIVER_MEMORY": f"{max(1024, megabytes // _MEMORY_PART)}m"}
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextlib.contextmanager
def _stderr_to(file_descriptor: int) -> Iterator[None]:
    """Let processes that are started inside write their standard error to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(file_descriptor, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
