"""Errors of Spark, each as one line: what happened, where, and what to do.

A task's error reaches the driver as text inside another error: a Java stack trace, an aborted job, a gRPC status. The
cause is recognised by texts that Spark and our own tasks write. If a task finds a broken history, the error is one of
the history, not of Spark.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from linearizability.history.errors import HistoryError, one_line


class EngineUnavailableError(Exception):
    """Reason for which Spark cannot be used here; the message names what to install or what does not respond."""


class EngineFailedError(Exception):
    """Failure of Spark during the work; its partial findings are not reported."""


_CAUSES: Final = (
    (
        r"No space left on device",
        "a disk is full where Spark shuffles and spills: name a larger one in spark.local.dir",
    ),
    (r"OutOfMemoryError[^\n]*", "a JVM ran out of memory: raise spark.executor.memory or spark.driver.memory"),
    (
        r"Python worker exited unexpectedly|MemoryError",
        "a Python worker was killed, usually because the machine had no memory left",
    ),
    (r"ExecutorLostFailure|Executor heartbeat timed out|exited caused by", "an executor was lost repeatedly"),
    (
        r"ModuleNotFoundError: No module named '(\w+)'",
        "an executor's Python lacks {0}: install it there, or set PYSPARK_PYTHON",
    ),
    (r"PYTHON_VERSION_MISMATCH", "the executors' Python version differs from the driver's: set PYSPARK_PYTHON"),
    (
        r"SparkContext was shut down|SparkContext has been shutdown|All masters are unresponsive",
        "the master closed the application",
    ),
    (r"StatusCode\.UNAVAILABLE|SESSION_CLOSED|OPERATION_NOT_FOUND", "the Spark Connect server does not respond"),
    # An exception in the JVM is a Py4JJavaError; every other Py4J error concerns the connection to it.
    (
        r"^Py4J(Network)?Error:|^Connection\w+Error:|^BrokenPipeError:|Answer from Java side is empty",
        "Spark's JVM has ended",
    ),
)
"""Patterns of an error's text with their meanings; the first match counts."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """Convert errors of Spark in the context into HistoryError or EngineFailedError, each in one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise error_of(f"{type(error).__name__}: {error}") from None


def error_of(text: str) -> HistoryError | EngineFailedError:
    """Return the exception for the text of an error of Spark, which may have many lines."""
    history_error = re.search(r"HistoryError: (.+)", text)
    if history_error is not None:
        return HistoryError(history_error[1])
    for pattern, meaning in _CAUSES:
        found = re.search(pattern, text)
        if found is not None:
            return EngineFailedError(f"Spark: {meaning.format(*found.groups())}")
    return EngineFailedError(f"Spark: {_innermost(text)}")


def _innermost(text: str) -> str:
    """Return the last line that begins with the name of an error, or else the last line.

    Java prints a cause below its effect, and Python prints an exception below its stack trace.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(Caused by: )?[\w.]+(Error|Exception)\b", line)]
    return one_line(Exception((named or lines or ["no message"])[-1].removeprefix("Caused by: ")))
