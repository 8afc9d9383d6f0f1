"""The Spark engine: the checks of `linearizability.anomalies`, as tasks by topic partition.

Four passes, each of tasks that read row groups of the run's files with the same reader as everybody else: hold the
history to the rules of the format; reduce it to a summary; pack rows into parcels (`parcels`), which Spark brings
together by bucket of topic partitions; judge each bucket, with the local engine's own functions. The driver sees
summaries and findings, never a record. A run whose files lie on a cluster's shared path is read there by the workers.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from linearizability.anomalies.arrow import numbers, operation_columns
from linearizability.anomalies.catalogue import ShardJudgement, judge_run, merge_first_reads, merge_shards
from linearizability.anomalies.columns import OperationColumns
from linearizability.anomalies.context import Context
from linearizability.anomalies.gather import SHARD_FIELDS, ShardRows
from linearizability.anomalies.summary import (
    SUMMARY_FIELDS,
    Summary,
    context_of,
    judgement_of,
    merge_summaries,
    settings_of,
    summarise,
)
from linearizability.history.reader import History, HistoryError, open_history
from linearizability.history.validate import checks
from linearizability.judgement import Judgement
from linearizability.shards.answers import packed, unpacked
from linearizability.shards.pieces import Piece, pieces_of, read_piece, shares_of
from reports.spark.errors import EngineFailedError, EngineUnavailableError, told_in_one_line
from reports.spark.parcels import PARCELS, Bucket, opened, pack
from reports.spark.progress import Tell, watching
from reports.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EngineFailedError", "EngineUnavailableError", "judge_with_spark"]

_ANSWER: Final = pa.schema([pa.field("task", pa.int32()), pa.field("answer", pa.binary())])
"""What a task tells the driver (`answers`)."""

_TASK_ROWS: Final = 100_000
"""A task has at least so many rows, or its start would cost more than its work."""
_BUCKET_ROWS: Final = 2_000_000
"""And at most about so many, or its memory would."""

Batches = Iterable[pa.RecordBatch]
Answer = TypeVar("Answer")


def judge_with_spark(run_dir: Path, master: str | None = None, tell: Tell | None = None) -> Judgement:
    """Judge the history of a run directory on Spark: the same judgement as `linearizability.check.judge`.

    `master` as `spark_session` takes it; `tell` is told how far it is. Raises HistoryError or NotARunError for the
    history, EngineUnavailableError where Spark cannot be used, EngineFailedError where it failed; one line each.
    """
    history = open_history(run_dir.resolve())
    with spark_session(master) as spark, told_in_one_line(), watching(spark, tell) as watch:
        with watch.step("holding the history to its format"):
            _validate(spark, history)
        with watch.step("reading what all checks need", _rows(history, SUMMARY_FIELDS)):
            summary = _summary(spark, history)
        context = context_of(history.run, settings_of(history.run, history.table("faults")), summary)
        with watch.step("judging topic partitions", _rows(history, SHARD_FIELDS)):
            parcels = _parcels(spark, history, context)
            context = _decided(parcels, context)
            findings = judge_run(_judged(parcels, context), summary.transactional, context)
        return judgement_of(summary, findings)


def _rows(history: History, tables: Iterable[str]) -> int:
    return sum(piece.rows for name in tables for piece in pieces_of(history, name))


def _validate(spark: "SparkSession", history: History) -> None:
    """The first pass: one task for each check."""
    broken: list[str | None] = _answers(spark, len(checks(history)), partial(_broken_rule, history))
    for message in broken:
        if message is not None:
            raise HistoryError(message)


def _broken_rule(history: History, task: int) -> str | None:
    try:
        checks(history)[task]()
    except HistoryError as error:
        return str(error)
    return None


def _summary(spark: "SparkSession", history: History) -> Summary:
    """The second pass."""
    pieces = [piece for name in SUMMARY_FIELDS for piece in pieces_of(history, name)]
    shares = shares_of(pieces, _parallelism(spark, pieces))
    return merge_summaries(_answers(spark, len(shares), partial(_summarise, history, shares)))


def _summarise(history: History, shares: list[list[Piece]], task: int) -> Summary:
    return merge_summaries(
        summarise(piece.table, table)
        for piece in shares[task]
        for table in read_piece(history, piece, SUMMARY_FIELDS[piece.table])
    )


def _parcels(spark: "SparkSession", history: History, context: Context) -> "DataFrame":
    """The third pass: all rows that a check reads, a bucket in each partition."""
    pieces = [piece for name in SHARD_FIELDS for piece in pieces_of(history, name)]
    buckets = _parallelism(spark, pieces)
    shares = shares_of(pieces, buckets)

    def parcelled(batches: Batches) -> Iterator[pa.RecordBatch]:
        for task in _tasks(batches):
            yield from pack(history, shares[task], task << 32, buckets, lambda topic: context.rules(topic).compaction)

    rows = spark.range(0, len(shares), 1, len(shares)).mapInArrow(parcelled, _spark_schema(PARCELS))
    return rows.repartitionById(buckets, "bucket").sortWithinPartitions("bucket", "place")


def _judged(parcels: "DataFrame", context: Context) -> Iterator[ShardJudgement]:
    """The fourth pass."""

    def judge(rows: ShardRows, operations: OperationColumns) -> ShardJudgement:
        return merge_shards(rows.judged(operations, context))

    return _of_buckets(parcels, context, judge)


def _decided(parcels: "DataFrame", context: Context) -> Context:
    """The context once every transaction whose commit is unknown has been looked for among what was read."""
    if not context.transactions.undecided.any():
        return context

    def look(rows: ShardRows, operations: OperationColumns) -> dict[int, int]:
        return rows.first_reads(operations, context)

    first: dict[int, int] = {}
    for found in _of_buckets(parcels, context, look):
        merge_first_reads(first, found)
    return replace(context, transactions=context.transactions.with_first_reads(first))


def _of_buckets(
    parcels: "DataFrame", context: Context, answer: Callable[[ShardRows, OperationColumns], Answer]
) -> Iterator[Answer]:
    """What a function answers of each bucket."""

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        for bucket in opened(batches):
            yield _answer(0, answer(*_opened(bucket, context)))

    for part in parcels.mapInArrow(answered, _spark_schema(_ANSWER)).toArrow()["answer"].to_pylist():
        yield unpacked(part)


def _opened(bucket: Bucket, context: Context) -> tuple[ShardRows, OperationColumns]:
    table = bucket.operations()
    rows = ShardRows(bucket, numbers(table["op_id"], 0), lambda topic: context.rules(topic).compaction)
    return rows, operation_columns(table, context.transactions, context.clients)


def _answers(spark: "SparkSession", count: int, answer: Callable[[int], Answer]) -> list[Answer]:
    """What a function answers in each of so many tasks, in their order."""
    if not count:
        return []

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        for task in _tasks(batches):
            yield _answer(task, answer(task))

    rows = spark.range(0, count, 1, count).mapInArrow(answered, _spark_schema(_ANSWER)).toArrow().sort_by("task")
    return [unpacked(part) for part in rows["answer"].to_pylist()]


def _answer(task: int, answer: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"task": [task], "answer": [packed(answer)]}, schema=_ANSWER)


def _tasks(batches: Batches) -> Iterator[int]:
    """The numbers that `spark.range` gave to this task: one."""
    for batch in batches:
        yield from batch.column("id").to_pylist()


def _parallelism(spark: "SparkSession", pieces: list[Piece]) -> int:
    """How many tasks to cut some rows into: as many as a shuffle is set to have, fewer for few rows, more for many."""
    rows = sum(piece.rows for piece in pieces)
    wanted = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(1, -(-rows // _BUCKET_ROWS), min(wanted, rows // _TASK_ROWS))


def _spark_schema(schema: pa.Schema) -> str:
    names = {pa.int32(): "int", pa.int64(): "long", pa.string(): "string", pa.binary(): "binary"}
    return ", ".join(f"{field.name} {names[field.type]}" for field in schema)
