"""Execution of tasks on Spark: each is a partition of a Python Data Source, which yields only its result.

A task is a function without arguments (`linearizability.shards.running`) that reads its own files; so nothing is
shuffled, and the JVM transfers only results. Classic sessions and Connect sessions both work.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from linearizability.shards.running import Result, Run, Task, run_here
from linearizability.shards.serialization import packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

_RESULTS: Final = pa.schema([pa.field("task", pa.int32()), pa.field("result", pa.binary())])


def tasks_on(spark: "SparkSession") -> Run:
    """Return a `Run` that executes tasks on a session, and yields the results after all tasks are done."""

    def run(tasks: Sequence[Task[Result]], /) -> Iterator[Result]:
        if len(tasks) <= 1:  # not worth a job: Spark would start two processes to plan it
            yield from run_here(tasks)
            return
        source = _source([packed(task) for task in tasks])
        spark.dataSource.register(source)
        rows = spark.read.format(source.name()).load().toArrow().sort_by("task")
        for result in rows["result"].to_pylist():
            yield unpacked(result)

    return run


def _source(tasks: Sequence[bytes]) -> "type[DataSource]":
    """Return a data source with a partition for each task; its name is unique, because a session keeps every name."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    own_name = f"kafkatrial-{uuid.uuid4().hex}"

    class Tasks(DataSource):
        @classmethod
        def name(cls) -> str:
            return own_name

        def schema(self) -> str:
            return "task int, result binary"

        def reader(self, schema: object) -> "Reader":
            del schema
            return Reader(tasks)

    class Reader(DataSourceReader):
        def __init__(self, waiting: Sequence[bytes]) -> None:
            self._waiting = waiting

        def partitions(self) -> Sequence[InputPartition]:
            # Spark serializes the reader into every task. So the list is dropped: each partition contains its task.
            given = [InputPartition((number, task)) for number, task in enumerate(self._waiting)]
            self._waiting = ()
            return given

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            number, task = partition.value
            result = packed(unpacked(task)())
            yield pa.RecordBatch.from_pydict({"task": [number], "result": [result]}, schema=_RESULTS)

    return Tasks
