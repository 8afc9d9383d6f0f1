"""DuckDB as an engine of the report, in this process. Data beyond its memory limit spill to a scratch directory."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import psutil
import pyarrow as pa

from linearizability.history.errors import one_line

MEMORY_PART: Final = 4
"""By default DuckDB may use a fourth of the machine's memory."""
_MACROS: Final = (
    "CREATE MACRO array_join(list, separator) AS array_to_string(list, separator)",
    "CREATE OR REPLACE MACRO cardinality(list) AS len(list)",
)
"""Spark's names of functions that have other names in DuckDB."""


class LocalEngineError(Exception):
    """Failure of DuckDB: no room on disk or in memory, or a file that changed while it was read."""


class LocalEngine:
    """Implementation of `Engine` (reports.jobs.engine)."""

    def __init__(self, connection: Any, where: Path) -> None:
        self._connection = connection
        self._where = where

    def add_files(self, name: str, schema: pa.Schema, paths: Sequence[Path]) -> None:
        """See `Engine`."""
        del schema  # every file has it
        files = ", ".join(_quoted(str(path)) for path in paths)
        options = "hive_partitioning = false, union_by_name = true"
        self._run(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{files}], {options})")

    def add_table(self, name: str, table: pa.Table) -> None:
        """See `Engine`."""
        self._connection.register(name, table)

    def add_view(self, name: str, sql: str) -> None:
        """See `Engine`."""
        self._run(f"CREATE VIEW {name} AS {sql}")

    def add_stage(self, name: str, sql: str) -> None:
        """See `Engine`."""
        self._run(f"CREATE TABLE {name} AS {sql}")

    def query(self, sql: str) -> pa.Table:
        """See `Engine`. Raises LocalEngineError."""
        with _errors_in_one_line(self._where):
            return self._connection.sql(sql).to_arrow_table()

    def begin(self, step: str) -> None:
        """See `Engine`. DuckDB reports no progress."""

    def _run(self, sql: str) -> None:
        with _errors_in_one_line(self._where):
            self._connection.execute(sql)


@contextlib.contextmanager
def local_engine(scratch: Path, memory_mb: int | None = None) -> Iterator[LocalEngine]:
    """Yield an engine. It keeps stages, and data that do not fit in memory, in `scratch`, which the caller removes.

    `memory_mb` limits the memory of DuckDB; a fourth of the machine's memory by default. Raises LocalEngineError.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    megabytes = memory_mb or psutil.virtual_memory().total // MEMORY_PART >> 20
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{megabytes}MiB",
        "temp_directory": str(scratch / "spilled"),
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    with (
        _errors_in_one_line(scratch),
        contextlib.closing(duckdb.connect(str(scratch / "stages.duckdb"), config=config)) as opened,
    ):
        for macro in _MACROS:
            opened.execute(macro)
        yield LocalEngine(opened, scratch)


@contextlib.contextmanager
def _errors_in_one_line(where: Path) -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        room = f"DuckDB had no room left in memory or in {where}: raise --memory-limit, or name a larger disk in --out"
        raise LocalEngineError(f"{room}: {one_line(error)}") from None
    except duckdb.Error as error:
        raise LocalEngineError(f"DuckDB: {one_line(error)}") from None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
