"""An archive of the classes that Spark's driver loads, which the JVM maps instead of reading 400 MB of jars (AppCDS).

It is made once (`kafkatrial targets install spark`) and lies in the user's cache, one for each Spark and each Java. A
JVM that finds it to be of another Java or other jars goes on without it, so that it can only be slow, never wrong.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import metadata, util
from pathlib import Path
from typing import Final

import reports
from linearizability.cache import cache_directory, move_into_cache, rejection_reason
from linearizability.isolated_python import module_command
from reports.spark.errors import EngineUnavailableError
from reports.spark.shipping import code_paths

_DUMP_TIMEOUT_S: Final = 300.0
_QUIET: Final = "-Xlog:cds=off", "-Xlog:cds+dynamic=off"
"""What an archive does not fit is told to nobody: it is no more than slower."""


def archive_path() -> Path:
    """Where the archive for this Spark on this Java lies, or will. Raises EngineUnavailableError without Spark."""
    spark = util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise EngineUnavailableError("Spark is not installed: pip install 'kafkatrial[spark]'")
    home = os.environ.get("JAVA_HOME")
    java = Path(str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java").resolve()
    changed_ns = java.stat().st_mtime_ns if java.exists() else 0  # by an update in the same place
    of = "\n".join([metadata.version("pyspark"), spark.origin, str(java), str(changed_ns)])
    return cache_directory() / "spark" / f"classes-{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa"


def archive_options() -> list[str]:
    """Return the JVM's options for the archive; none if it does not exist or was changed."""
    path = archive_path()
    return [] if rejection_reason(path) else [f'"-XX:SharedArchiveFile={path}"', *_QUIET]


def make_archive() -> Path:
    """Make the archive unless it is there; takes some twenty seconds. Raises EngineUnavailableError."""
    path = archive_path()
    if not rejection_reason(path):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineUnavailableError(f"{path.parent}: cannot be written: {error.strerror}") from None
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".classes-") as folder:
        draft = Path(folder) / path.name
        options = " ".join(["-XX:TieredStopAtLevel=1", f'"-XX:ArchiveClassesAtExit={draft}"', *_QUIET])
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": options, "PYTHONPATH": os.pathsep.join(code_paths())}
        command = module_command(Path(reports.__path__[0]).parent, "reports.spark.dump_classes")
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_DUMP_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise EngineUnavailableError(f"no archive of Spark's classes in {_DUMP_TIMEOUT_S:.0f} s") from None
        if not draft.is_file():
            said = (done.stderr.strip().splitlines() or ["the JVM wrote none"])[-1]
            raise EngineUnavailableError(f"no archive of Spark's classes: {said}")
        move_into_cache(draft, path)
    return path
