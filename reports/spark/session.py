"""Spark session for judging: the running session if it fits, else one of our own.

A session on this machine listens on 127.0.0.1 only and has no UI; its JVM writes to a file, not to the terminal; its
workers run this interpreter. For a cluster the session ships our code (`shipping`). Settings of the user
(spark-defaults.conf, PYSPARK_SUBMIT_ARGS, environment, `settings`) take precedence over ours.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from linearizability.installation import install_hint
from linearizability.isolated_python import isolate_children
from reports.spark.archive import archive_options
from reports.spark.errors import EngineFailedError, EngineUnavailableError
from reports.spark.masters import Master, MasterKind
from reports.spark.shipping import code_paths, shipped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EngineUnavailableError", "spark_session"]

LOG_NAME: Final = "spark.log"
_OURS: Final = {
    "spark.app.name": "kafkatrial",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "16",
    # Results of tasks are limited only by the memory.
    "spark.driver.maxResultSize": "0",
    # Rows of our tasks are large: hundreds of kilobytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
}
_OURS_ON_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_MEMORY_PART: Final = 4
"""Our JVM may use a fourth of the memory: results of tasks about millions of transactions pass through it."""
_EXECUTOR_TIMEOUT_S: Final = 60.0
"""The time that a standalone master may take to allocate an executor."""
_CONNECT_TIMEOUT_S: Final = 20.0
_CONNECT_RETRIES_MAX: Final = 5
"""The waits between retries start at 50 ms and grow fourfold: about 20 seconds in total."""


@contextlib.contextmanager
def spark_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator["SparkSession"]:
    """Yield a session on `master`; without `master`, the running session, or else one on the configured master.

    The configured master is `local[*]` by default. A session that already ran is left running; one of ours is stopped.
    `settings` are Spark's, by name. The JVM's output goes to `log`, if the file can be written, and an
    EngineFailedError of the caller then names that file. Raises EngineUnavailableError.
    """
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and master in (None, active.conf.get("spark.master", None)):
        yield active
        return
    named = None if master is None else Master.of(master)
    with contextlib.ExitStack() as stack:
        if named is not None and named.kind is MasterKind.CONNECT:
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # raised as an error as well
            session = _connected(SparkSession, named, settings or {})
            stack.callback(_stop, session)
            stack.enter_context(shipped(session, is_connect=True))
        else:
            session = _start(SparkSession, named, settings or {}, stack.enter_context(_log_file(log)))
            stack.callback(_stop, session)
            if not (session.sparkContext.master or "").startswith("local"):
                stack.enter_context(shipped(session, is_connect=False))
        try:
            yield session
        except EngineFailedError as error:
            if log is None or not log.exists():
                raise
            raise EngineFailedError(f"{error} (more in {log})") from None


def require_spark() -> None:
    """Raise EngineUnavailableError if PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise EngineUnavailableError(f"Spark is not installed: {install_hint('spark')}")


def require_java() -> None:
    """Raise EngineUnavailableError if there is no Java; Spark itself checks its version."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else None
    if java is not None and not java.exists():
        raise EngineUnavailableError(f"Spark needs Java 17 or newer, and JAVA_HOME={home} has no bin/java")
    if java is None and shutil.which("java") is None:
        raise EngineUnavailableError("Spark needs Java 17 or newer: install one (Debian: openjdk-17-jre-headless)")


def _connected(session_class: Any, master: Master, settings: Mapping[str, str]) -> "SparkSession":
    """Return a session on a Spark Connect server."""
    try:
        import grpc
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
    except ImportError:
        raise EngineUnavailableError(f"Spark Connect is not installed: {install_hint('spark')}") from None
    master.require_connection()
    try:
        channel = DefaultChannelBuilder(master.url).toChannel()
        grpc.channel_ready_future(channel).result(_CONNECT_TIMEOUT_S)
        channel.close()
        builder = session_class.builder.remote(master.url)
        for name, value in settings.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
        # The client's default policy retries for ten minutes after the server has ended.
        session.client.set_retry_policies([DefaultPolicy(max_retries=_CONNECT_RETRIES_MAX)])
    except (PySparkException, grpc.RpcError, grpc.FutureTimeoutError) as error:
        lines = str(error).splitlines() or ["another service listens there, or it does not use TLS"]
        raise EngineUnavailableError(f"{master.url}: no Spark Connect server: {lines[0]}") from None
    return session


def _start(session_class: Any, master: Master | None, settings: Mapping[str, str], log: IO[bytes]) -> "SparkSession":
    """Return a session whose driver is this process."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    require_java()
    began = log.seek(0, os.SEEK_END)
    try:
        isolate_children()  # the JVM passes its own PYTHONPATH to the Python workers, too
        with _stderr_to(log.fileno()), _jvm_options():
            builder, chosen = _builder(session_class, master, settings)
            chosen.require_connection()
            session: SparkSession = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        log.seek(began)
        raise _not_started(log.read().decode(errors="replace"), error) from None
    try:
        _require_executors(session, chosen)
    except EngineUnavailableError:
        session.stop()
        raise
    return session


def _stop(session: "SparkSession") -> None:
    """Stop a session. Ignore connection errors, because the end of a JVM is reported elsewhere."""
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError, ConnectionError):
        session.stop()


def _builder(session_class: Any, master: Master | None, settings: Mapping[str, str]) -> tuple[Any, Master]:
    """Return the builder of the session, and its master."""
    from pyspark import SparkConf, SparkContext

    # The JVM reads spark-defaults.conf and PYSPARK_SUBMIT_ARGS when it starts; only then are the settings known.
    SparkContext._ensure_initialized()  # noqa: SLF001 - PySpark's only way to start the JVM
    theirs = SparkConf()
    chosen = master or Master.of(settings.get("spark.master") or theirs.get("spark.master") or "local[*]")
    python = sys.executable  # noqa: TID251 - Spark starts it, with PYTHONSAFEPATH
    os.environ.setdefault("PYSPARK_PYTHON", theirs.get("spark.pyspark.python") or python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
    ours = {**_OURS, **(_OURS_ON_LOOPBACK if chosen.is_loopback else {})}
    ours["spark.executorEnv.PYTHONSAFEPATH"] = "1"
    if chosen.kind is MasterKind.LOCAL:
        ours["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(code_paths())
    builder = session_class.builder.master(chosen.url)
    for name, value in {**{name: ours[name] for name in ours if not theirs.contains(name)}, **settings}.items():
        builder = builder.config(name, value)
    return builder, chosen


def _not_started(output: str, error: Exception) -> EngineUnavailableError:
    if "UnsupportedClassVersionError" in output:
        java = (
            str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else shutil.which("java")
        )
        version = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=False).stderr
        return EngineUnavailableError(
            f"Spark needs Java 17 or newer, and {java} is {(version.splitlines() or ['older'])[0]}"
        )
    lines = [line for line in output.splitlines() if line.strip()] or str(error).splitlines() or [type(error).__name__]
    if "All masters are unresponsive" in output:
        return EngineUnavailableError("the master does not respond like a Spark master of this version")
    return EngineUnavailableError(f"Spark did not start (it needs Java 17 or newer): {lines[-1].strip()}")


def _require_executors(session: "SparkSession", master: Master) -> None:
    """Raise EngineUnavailableError if no executor starts: a master accepts an application even without workers."""
    context = session.sparkContext
    if master.kind is not MasterKind.STANDALONE or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return
    give_up_s = time.monotonic() + _EXECUTOR_TIMEOUT_S
    while len(context._jsc.sc().statusTracker().getExecutorInfos()) < 2:  # the driver is one of them  # noqa: SLF001 - no API counts executors
        if time.monotonic() > give_up_s:
            required = "the memory of spark.executor.memory and the cores of spark.executor.cores"
            raise EngineUnavailableError(
                f"{master.url}: no executor in {_EXECUTOR_TIMEOUT_S:.0f} s: a worker needs {required}"
            )
        time.sleep(0.1)


@contextlib.contextmanager
def _log_file(path: Path | None) -> Iterator[IO[bytes]]:
    """Yield the file for the JVM's output; a temporary one if there is none or it cannot be written."""
    with contextlib.ExitStack() as stack:
        file: IO[bytes] | None = None
        if path is not None:
            with contextlib.suppress(OSError):
                file = stack.enter_context(path.open("ab+"))
        yield file or stack.enter_context(tempfile.TemporaryFile())


@contextlib.contextmanager
def _jvm_options() -> Iterator[None]:
    """Set our options for a JVM that is started inside, unless the user has set the same variables."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    ours = {
        # The JVM plans and transfers, and computes little. Without the C2 compiler a session is ready in half the time.
        "SPARK_SUBMIT_OPTS": " ".join(["-XX:TieredStopAtLevel=1", *archive_options()]),
        "SPARK_DRIVER_MEMORY": f"{max(1024, megabytes // _MEMORY_PART)}m",
    }
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextlib.contextmanager
def _stderr_to(file_descriptor: int) -> Iterator[None]:
    """Redirect the standard error of processes that are started inside to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(file_descriptor, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
