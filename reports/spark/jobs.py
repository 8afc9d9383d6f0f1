"""Engine of the report on Spark: tasks run the same SQL over the same files, and the driver receives the results.

Executors keep stages in memory or on their disks. The files of the runs, and the report's scratch directory if it has
rewritten files, must be readable by the executors under the same paths.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reports.spark.errors import spark_errors
from reports.spark.progress import Listener, Watch, watching
from reports.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS: Final = "65536"
"""The number of result rows in one batch to the driver."""


class SparkEngine:
    """Implementation of `Engine` (reports.jobs.engine)."""

    def __init__(self, spark: "SparkSession", watch: Watch, step: ExitStack) -> None:
        self._spark = spark
        self._watch = watch
        self._step = step
        self._stages: list[DataFrame] = []
        self._names: list[str] = []

    def add_files(self, name: str, schema: pa.Schema, paths: Sequence[Path]) -> None:
        """See `Engine`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        # Without the option, Spark reads a folder `NAME=VALUE` above a file as a partition column.
        reader = self._spark.read.schema(from_arrow_schema(schema)).option("recursiveFileLookup", "true")
        self._create_view(name, reader.parquet(*(path.as_uri() for path in paths)))

    def add_table(self, name: str, table: pa.Table) -> None:
        """See `Engine`."""
        # In one chunk: after two consecutive empty chunks, Spark 4.3 silently drops all further rows.
        self._create_view(name, self._spark.createDataFrame(table.combine_chunks()))

    def add_view(self, name: str, sql: str) -> None:
        """See `Engine`."""
        self._create_view(name, self._spark.sql(sql))

    def add_stage(self, name: str, sql: str) -> None:
        """See `Engine`."""
        rows = self._spark.sql(sql).persist()
        self._stages.append(rows)
        self._create_view(name, rows)

    def query(self, sql: str) -> pa.Table:
        """See `Engine`."""
        return self._spark.sql(sql).toArrow()

    def begin(self, step: str) -> None:
        """See `Engine`."""
        self._step.close()
        self._step.enter_context(self._watch.step(step))

    def close(self) -> None:
        """Unpersist the rows of all stages and drop the views."""
        for rows in self._stages:
            rows.unpersist()
        for name in self._names:
            self._spark.catalog.dropTempView(name)

    def _create_view(self, name: str, rows: "DataFrame") -> None:
        rows.createOrReplaceTempView(name)
        self._names.append(name)


@contextmanager
def spark_engine(master: str | None = None, on_progress: Listener | None = None) -> Iterator[SparkEngine]:
    """Yield an engine on the given master (see `spark_session`). `on_progress` receives the progress.

    Raises EngineUnavailableError or EngineFailedError, and HistoryError if a task reads an invalid history.
    """
    with spark_session(master) as spark, spark_errors(), watching(spark, on_progress) as watch, ExitStack() as step:
        before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch", None)
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _BATCH_ROWS)
        engine = SparkEngine(spark, watch, step)
        try:
            yield engine
        finally:
            engine.close()
            if before is None:
                spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
            else:
                spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", before)
