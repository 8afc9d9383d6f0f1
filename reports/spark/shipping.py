"""Shipping of our code to executors: a zip of the packages that a task imports.

Tasks are pickled by reference: an executor imports `linearizability` and `reports` by name. On this machine it finds
them in place; on a cluster they come with the job, by `addPyFile`, Connect's `addArtifact` or `spark-submit
--py-files`. The executor's Python must have their dependencies, NumPy and PyArrow.
"""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import linearizability
import reports
from linearizability.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZIP_NAME: Final = "kafkatrial.zip"
JOB_NAME: Final = "kafkatrial_job.py"
_PACKAGES: Final = (linearizability, reports)
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip, so that the same code makes the same bytes."""
_JOB: Final = '''"""Judge histories on Spark: spark-submit --py-files kafkatrial.zip kafkatrial_job.py RUN…"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the directory of this file, where a user may have a `reports`

from reports.spark.job import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''


def code_paths() -> list[str]:
    """Return the folders that contain our packages on this machine, then PYTHONPATH if it is set.

    There are two folders if kafkatrial was installed from a wheel, which has `reports` in `kafkatrial/_suite`.
    """
    folders = [str(Path(package.__path__[0]).parent) for package in _PACKAGES]
    return [*dict.fromkeys(folders), *filter(None, [os.environ.get("PYTHONPATH")])]


def write_zip(path: Path) -> None:
    """Write the packages as a zip that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            top = Path(package.__path__[0])
            for source in sorted(top.rglob("*")):
                if source.is_file() and "__pycache__" not in source.parts:
                    entry = zipfile.ZipInfo(str(Path(top.name) / source.relative_to(top)), _ENTRY_TIME)
                    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    archive.writestr(entry, source.read_bytes())


def write_job(folder: Path) -> tuple[Path, Path]:
    """Write what `spark-submit` needs to judge on a cluster: the zip and the program. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_zip(folder / ZIP_NAME)
    (folder / JOB_NAME).write_text(_JOB, encoding="utf-8")
    return folder / ZIP_NAME, folder / JOB_NAME


@contextmanager
def shipped(session: "SparkSession", *, is_connect: bool) -> Iterator[None]:
    """Ship our code to the tasks of a session.

    The zip stays on this disk while the context is open, for executors that start later. If our code is itself in a
    zip, it came by `--py-files`, and the executors have it already.
    """
    if not all(Path(package.__path__[0]).is_dir() for package in _PACKAGES):
        yield
        return
    with TemporaryFolder() as folder:
        path = folder / ZIP_NAME
        write_zip(path)
        if is_connect:
            session.addArtifact(str(path), pyfile=True)
        else:
            session.sparkContext.addPyFile(str(path))
        yield
