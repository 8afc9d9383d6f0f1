"""Fixture that runs Apache Kafka's tools if Java and the jars are installed."""

import subprocess
from collections.abc import Callable, Sequence

import pytest

from fixtures.targets.jars import JarLock
from fixtures.targets.java import find_java
from fixtures.targets.target import NotInstalledError

KAFKA_VERSION = "4.3.1"

KafkaTool = Callable[..., str]


@pytest.fixture(scope="session")
def kafka_tool() -> KafkaTool:
    """Return a function that runs a main class of Apache Kafka and returns its output, with standard error.

    The function asserts that the exit code is 0, or not 0 with `fails=True`.
    """
    try:
        java, class_path = find_java().executable, JarLock.load(KAFKA_VERSION).class_path()
    except NotInstalledError as error:
        pytest.skip(str(error))
    command = (java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", class_path)

    def run(main_class: str, arguments: Sequence[str], *, fails: bool = False) -> str:
        done = subprocess.run(
            [*command, main_class, *arguments], check=False, capture_output=True, text=True, timeout=120
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + "\n".join(line for line in done.stderr.splitlines() if not line.startswith("log4j:"))

    return run
