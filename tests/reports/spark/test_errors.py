"""Errors of Spark: each is one line; invalid masters are rejected before anything starts."""

import socket

import pytest

from linearizability.history.errors import HistoryError
from reports.spark.errors import EngineFailedError, EngineUnavailableError, error_of, spark_errors
from reports.spark.masters import Master, MasterKind

ABORTED = """An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times, {}
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ABORTED.format("java.io.IOException: No space left on device"), "a disk is full.* spark.local.dir"),
        (
            ABORTED.format("ExecutorLostFailure (executor 2 exited unrelated to the running tasks)"),
            "an executor was lost",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "raise spark.executor.memory"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "an executor's Python lacks pyarrow"),
        (
            "Traceback\nValueError: out of range\n\tat org.x\nCaused by: java.lang.IllegalStateException: y",
            "IllegalState.*: y",
        ),
        (
            "status = StatusCode.UNAVAILABLE\n details = failed to connect: Connection refused (111)",
            "Connect server does not respond",
        ),
        ("", "no message"),
    ],
)
def test_long_text_becomes_one_line(text, message):
    error = error_of(text)
    assert isinstance(error, EngineFailedError)
    assert "\n" not in str(error)
    with pytest.raises(EngineFailedError, match=message):
        raise error


def test_broken_history_in_a_task_is_a_history_error():
    error = error_of(ABORTED.format("\nlinearizability.history.errors.HistoryError: table records, row 2: no value\n"))
    assert isinstance(error, HistoryError)
    assert str(error) == "table records, row 2: no value"


@pytest.mark.spark
def test_lost_connection_to_the_jvm_is_converted_and_other_errors_are_unchanged():
    with pytest.raises(EngineFailedError, match="JVM has ended"), spark_errors():
        raise ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(KeyError), spark_errors():
        raise KeyError("x")


@pytest.mark.parametrize(
    ("url", "kind", "addresses"),
    [
        ("local", MasterKind.LOCAL, ()),
        ("local[*]", MasterKind.LOCAL, ()),
        ("local[2,3]", MasterKind.LOCAL, ()),
        ("yarn", MasterKind.YARN, ()),
        ("spark://a:7077,b:7078", MasterKind.STANDALONE, (("a", 7077), ("b", 7078))),
        ("k8s://https://a:6443", MasterKind.KUBERNETES, (("a", 6443),)),
        ("k8s://http://a", MasterKind.KUBERNETES, (("a", 80),)),
        ("k8s://a", MasterKind.KUBERNETES, (("a", 443),)),
        ("sc://a", MasterKind.CONNECT, (("a", 15002),)),
        ("sc://[::1]:99/;token=x", MasterKind.CONNECT, (("::1", 99),)),
    ],
)
def test_master_has_its_addresses(url, kind, addresses):
    assert Master.of(url) == Master(url, kind, addresses)


@pytest.mark.parametrize(
    "url", ["", "loca", "spark://a", "spark://", "mesos://a:1", "http://a:1", "local[2", "sc://a:b"]
)
def test_invalid_master_is_rejected(url):
    with pytest.raises(EngineUnavailableError, match="not a Spark master; known are local"):
        Master.of(url)


def test_only_a_master_on_this_machine_is_on_loopback():
    on_loopback = {"local[*]": True, "spark://127.0.0.1:1": True, "spark://127.0.0.1:1,a:1": False, "yarn": False}
    assert {url: Master.of(url).is_loopback for url in on_loopback} == on_loopback


def test_one_responding_master_of_several_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        port, free = server.getsockname()[1], gone.getsockname()[1]
        gone.close()
        Master.of(f"spark://127.0.0.1:{free},127.0.0.1:{port}").require_connection()
        with pytest.raises(EngineUnavailableError, match=f"127.0.0.1:{free}: the master does not respond: .*refused"):
            Master.of(f"sc://127.0.0.1:{free}").require_connection()
