"""What can go wrong with Spark, each as one line: what happened, where, what to do.

A task's error reaches the driver as text inside another error's: a Java stack trace, a job that was aborted, a status
of gRPC. What it was is found by what Spark and our own tasks are known to write. A broken history that a task has found
is the history's error, not Spark's.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from linearizability.history.errors import HistoryError, one_line


class EngineUnavailableError(Exception):
    """Spark cannot be used here; the message says what to install, or what does not answer."""


class EngineFailedError(Exception):
    """Spark was there, and did not come to an end: nothing of what it had found is told."""


_CAUSES: Final = (
    (
        r"No space left on device",
        "a disk is full where Spark shuffles and spills: name a larger one in spark.local.dir",
    ),
    (r"OutOfMemoryError[^\n]*", "a JVM ran out of memory: raise spark.executor.memory or spark.driver.memory"),
    (
        r"Python worker exited unexpectedly|MemoryError",
        "a Python worker was killed; mostly the machine had no memory left",
    ),
    (r"ExecutorLostFailure|Executor heartbeat timed out|exited caused by", "an executor was lost over and over"),
    (
        r"ModuleNotFoundError: No module named '(\w+)'",
        "an executor's Python lacks {0}: install it there, or set PYSPARK_PYTHON",
    ),
    (r"PYTHON_VERSION_MISMATCH", "the executors' Python is not of this version: set PYSPARK_PYTHON"),
    (
        r"SparkContext was shut down|SparkContext has been shutdown|All masters are unresponsive",
        "the master let go of us",
    ),
    (r"StatusCode\.UNAVAILABLE|SESSION_CLOSED|OPERATION_NOT_FOUND", "the Spark Connect server is gone"),
    # An exception of the JVM's own is a Py4JJavaError; every other of Py4J's is of the connection to it.
    (
        r"^Py4J(Network)?Error:|^Connection\w+Error:|^BrokenPipeError:|Answer from Java side is empty",
        "Spark's JVM is gone",
    ),
)
"""What an error's text says, and what that means; the first that is found counts."""


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn what Spark raises inside into HistoryError or EngineFailedError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise explained(f"{type(error).__name__}: {error}") from None


def explained(said: str) -> HistoryError | EngineFailedError:
    """The error that a long text of Spark's stands for."""
    of_history = re.search(r"HistoryError: (.+)", said)
    if of_history is not None:
        return HistoryError(of_history[1])
    for pattern, meaning in _CAUSES:
        found = re.search(pattern, said)
        if found is not None:
            return EngineFailedError(f"Spark: {meaning.format(*found.groups())}")
    return EngineFailedError(f"Spark: {_innermost(said)}")


def _innermost(said: str) -> str:
    """The last line that names an error; Java and Python both print the cause below what it caused."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(Caused by: )?[\w.]+(Error|Exception)\b", line)]
    return one_line(Exception((named or lines or ["it said nothing"])[-1].removeprefix("Caused by: ")))
