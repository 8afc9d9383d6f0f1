"""A Spark session to judge in: the caller's if there is one, else one of our own that bothers nobody.

A session on this machine listens on 127.0.0.1 only and has no UI; its JVM writes to a file, not to the terminal; its
workers run this interpreter. To a cluster the session brings our code (`shipping`). Whatever the user has set
(spark-defaults.conf, PYSPARK_SUBMIT_ARGS, environment, `settings`) wins over ours.
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

from linearizability.isolated_python import isolate_children
from reports.spark.archive import archive_options
from reports.spark.errors import EngineFailedError, EngineUnavailableError
from reports.spark.masters import Kind, Master
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
    # What tasks tell is bounded by the memory that there is, and by nothing else.
    "spark.driver.maxResultSize": "0",
    # Rows between our tasks are large: hundreds of kilobytes, not bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
}
_OURS_ON_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_MEMORY_PART: Final = 4
"""The JVM we start may grow to a fourth of the memory: through it goes what tasks tell of millions of transactions."""
_EXECUTOR_TIMEOUT_S: Final = 60.0
"""So long a standalone master may take to give us an executor."""
_CONNECT_TIMEOUT_S: Final = 20.0
_CONNECT_RETRIES_MAX: Final = 5
"""With waits that begin at 50 ms and grow fourfold: some 20 seconds."""


@contextlib.contextmanager
def spark_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator["SparkSession"]:
    """A session on `master` (None: the running session, the user's configured master, or `local[*]`).

    A session that was already there is left running; one of ours is stopped. `settings` are Spark's, by name. What
    the JVM says goes to `log`, where the file can be written, and an EngineFailedError of the caller's names that file.
    Raises EngineUnavailableError.
    """
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and master in (None, active.conf.get("spark.master", None)):
        yield active
        return
    named = None if master is None else Master.of(master)
    with contextlib.ExitStack() as stack:
        if named is not None and named.kind is Kind.CONNECT:
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # it is an error as well
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
    """Raise EngineUnavailableError where PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise EngineUnavailableError("Spark is not installed: pip install 'kafkatrial[spark]'")


def require_java() -> None:
    """Raise EngineUnavailableError where there is no Java; whether it is new enough Spark itself says."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else None
    if java is not None and not java.exists():
        raise EngineUnavailableError(f"Spark needs Java 17 or newer, and JAVA_HOME={home} has no bin/java")
    if java is None and shutil.which("java") is None:
        raise EngineUnavailableError("Spark needs Java 17 or newer: install one (Debian: openjdk-17-jre-headless)")


def _connected(session_class: Any, master: Master, settings: Mapping[str, str]) -> "SparkSession":
    """A session on a Spark Connect server."""
    try:
        import grpc
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
    except ImportError:
        raise EngineUnavailableError("Spark Connect is not installed: pip install 'kafkatrial[spark]'") from None
    master.require_answer()
    try:
        channel = DefaultChannelBuilder(master.url).toChannel()
        grpc.channel_ready_future(channel).result(_CONNECT_TIMEOUT_S)
        channel.close()
        builder = session_class.builder.remote(master.url)
        for name, value in settings.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
        # Its own policy goes on for ten minutes after the server is gone.
        session.client.set_retry_policies([DefaultPolicy(max_retries=_CONNECT_RETRIES_MAX)])
    except (PySparkException, grpc.RpcError, grpc.FutureTimeoutError) as error:
        said = str(error).splitlines() or ["something else listens there, or it is not TLS that is spoken"]
        raise EngineUnavailableError(f"{master.url}: no Spark Connect server: {said[0]}") from None
    return session


def _start(session_class: Any, master: Master | None, settings: Mapping[str, str], log: IO[bytes]) -> "SparkSession":
    """A session whose driver is this process."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    require_java()
    began = log.seek(0, os.SEEK_END)
    try:
        isolate_children()  # the JVM hands its own PYTHONPATH to the Python workers, too
        with _stderr_to(log.fileno()), _jvm_options():
            builder, chosen = _builder(session_class, master, settings)
            chosen.require_answer()
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
    """Stop it; a JVM that is gone has said so elsewhere."""
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError, ConnectionError):
        session.stop()


def _builder(session_class: Any, master: Master | None, settings: Mapping[str, str]) -> tuple[Any, Master]:
    """What is to be started, and on which master."""
    from pyspark import SparkConf, SparkContext

    # The JVM reads spark-defaults.conf and PYSPARK_SUBMIT_ARGS when it starts; only then is it known what is set.
    SparkContext._ensure_initialized()  # noqa: SLF001 - PySpark's only way to start the JVM
    theirs = SparkConf()
    chosen = master or Master.of(settings.get("spark.master") or theirs.get("spark.master") or "local[*]")
    python = sys.executable  # noqa: TID251 - Spark starts it, with PYTHONSAFEPATH
    os.environ.setdefault("PYSPARK_PYTHON", theirs.get("spark.pyspark.python") or python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
    ours = {**_OURS, **(_OURS_ON_LOOPBACK if chosen.is_loopback else {})}
    ours["spark.executorEnv.PYTHONSAFEPATH"] = "1"
    if chosen.kind is Kind.LOCAL:
        ours["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(code_paths())
    builder = session_class.builder.master(chosen.url)
    for name, value in {**{name: ours[name] for name in ours if not theirs.contains(name)}, **settings}.items():
        builder = builder.config(name, value)
    return builder, chosen


def _not_started(said: str, error: Exception) -> EngineUnavailableError:
    if "UnsupportedClassVersionError" in said:
        java = (
            str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else shutil.which("java")
        )
        told = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=False).stderr
        return EngineUnavailableError(
            f"Spark needs Java 17 or newer, and {java} is {(told.splitlines() or ['older'])[0]}"
        )
    lines = [line for line in said.splitlines() if line.strip()] or str(error).splitlines() or [type(error).__name__]
    if "All masters are unresponsive" in said:
        return EngineUnavailableError("the master does not answer as a Spark master of this version does")
    return EngineUnavailableError(f"Spark did not start (it needs Java 17 or newer): {lines[-1].strip()}")


def _require_executors(session: "SparkSession", master: Master) -> None:
    """A standalone master takes an application that it has no worker for, and the first job waits for ever."""
    context = session.sparkContext
    if master.kind is not Kind.STANDALONE or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return
    give_up_s = time.monotonic() + _EXECUTOR_TIMEOUT_S
    while len(context._jsc.sc().statusTracker().getExecutorInfos()) < 2:  # the driver is one of them  # noqa: SLF001 - no API counts executors
        if time.monotonic() > give_up_s:
            asked = "the memory and cores that spark.executor.memory and spark.executor.cores ask for"
            raise EngineUnavailableError(
                f"{master.url}: no executor in {_EXECUTOR_TIMEOUT_S:.0f} s: has a worker {asked}?"
            )
        time.sleep(0.1)


@contextlib.contextmanager
def _log_file(path: Path | None) -> Iterator[IO[bytes]]:
    """The file for the JVM to write to; one without a name where there is none, or it cannot be written."""
    with contextlib.ExitStack() as stack:
        file: IO[bytes] | None = None
        if path is not None:
            with contextlib.suppress(OSError):
                file = stack.enter_context(path.open("ab+"))
        yield file or stack.enter_context(tempfile.TemporaryFile())


@contextlib.contextmanager
def _jvm_options() -> Iterator[None]:
    """Give a JVM that is started inside our options, where the user gives it none in the same way."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    ours = {
        # It plans and carries, and computes little: a session is ready in half the time.
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
    """Let processes that are started inside write their standard error to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(file_descriptor, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
