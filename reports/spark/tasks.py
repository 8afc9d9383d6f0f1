"""Runs tasks on Spark: each is a partition of a Python Data Source, which yields nothing but its answer.

A task is a function without arguments (`linearizability.shards.running`) that reads its own files; so nothing is
shuffled, and the JVM sees answers only. It needs no more than a session, classic or Connect.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from linearizability.shards.answers import packed, unpacked
from linearizability.shards.running import Answer, Run, Task, run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

_ANSWERS: Final = pa.schema([pa.field("task", pa.int32()), pa.field("answer", pa.binary())])


def tasks_on(spark: "SparkSession") -> Run:
    """A session as what runs tasks. The answers come when all are there."""

    def run(tasks: Sequence[Task[Answer]], /) -> Iterator[Answer]:
        if len(tasks) <= 1:  # not worth a job: Spark would start two processes to plan it
            yield from run_here(tasks)
            return
        source = _source([packed(task) for task in tasks])
        spark.dataSource.register(source)
        rows = spark.read.format(source.name()).load().toArrow().sort_by("task")
        for answer in rows["answer"].to_pylist():
            yield unpacked(answer)

    return run


def _source(tasks: Sequence[bytes]) -> "type[DataSource]":
    """A data source with a partition for each task; its name is its own, since a session keeps every name."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    own_name = f"kafkatrial-{uuid.uuid4().hex}"

    class Tasks(DataSource):
        @classmethod
        def name(cls) -> str:
            return own_name

        def schema(self) -> str:
            return "task int, answer binary"

        def reader(self, schema: object) -> "Reader":
            del schema
            return Reader(tasks)

    class Reader(DataSourceReader):
        def __init__(self, waiting: Sequence[bytes]) -> None:
            self._waiting = waiting

        def partitions(self) -> Sequence[InputPartition]:
            # A partition brings its task along; the reader, which every task gets, keeps none.
            given = [InputPartition((number, task)) for number, task in enumerate(self._waiting)]
            self._waiting = ()
            return given

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            number, task = partition.value
            answer = packed(unpacked(task)())
            yield pa.RecordBatch.from_pydict({"task": [number], "answer": [answer]}, schema=_ANSWERS)

    return Tasks
