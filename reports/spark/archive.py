"""Class archive (AppCDS) for Spark's driver: the JVM maps the archive instead of reading classes from 400 MB of jars.

`kafkatrial targets install spark` makes it (`linearizability.class_archive`).
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Final

import reports
from linearizability.class_archive import ClassArchive, ClassArchiveError
from linearizability.installation import install_hint
from linearizability.isolated_python import module_command
from reports.spark.errors import EngineUnavailableError
from reports.spark.shipping import code_paths

_DUMP_TIMEOUT_S: Final = 300.0


def spark_archive() -> ClassArchive:
    """Return the archive for this Spark on this Java. Raises EngineUnavailableError without Spark."""
    spark = util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise EngineUnavailableError(f"Spark is not installed: {install_hint('spark')}")
    home = os.environ.get("JAVA_HOME")
    java = Path(str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java")
    return ClassArchive.of("spark", java, sorted((Path(spark.origin).parent / "jars").glob("*.jar")))


def archive_options() -> list[str]:
    """Return the JVM's options for the archive, as Spark's launcher reads them from the environment."""
    return [f'"{option}"' for option in spark_archive().options()]


def make_archive() -> Path:
    """Make the archive unless it exists; takes some twenty seconds. Raises EngineUnavailableError."""
    try:
        return spark_archive().make(_run_spark)
    except ClassArchiveError as error:
        raise EngineUnavailableError(f"no archive of Spark's classes: {error}") from None


def _run_spark(options: Sequence[str]) -> str:
    words = ["-XX:TieredStopAtLevel=1", *(f'"{option}"' for option in options)]
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": " ".join(words), "PYTHONPATH": os.pathsep.join(code_paths())}
    command = module_command(Path(reports.__path__[0]).parent, "reports.spark.dump_classes")
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_DUMP_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ClassArchiveError(f"Spark did not end within {_DUMP_TIMEOUT_S:.0f} s") from None
    return (done.stderr.strip().splitlines() or [""])[-1]
