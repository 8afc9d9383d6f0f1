"""The Spark engine: the checks of `linearizability.anomalies`, as tasks by topic partition.

Tasks read row groups of the run's files through the same reader as everybody else, reduce them to a summary (first
pass), or turn them into shard rows (second pass), which Spark brings together by topic name and partition; the function
that judges a shard is the local engine's. The driver sees summaries and findings, never a record. A run whose files lie
on a cluster's shared path is read there by the workers.
"""

import pickle
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import (
    OPERATION_FIELDS,
    PLACE_FIELDS,
    POSITION_FIELDS,
    RECORD_FIELDS,
    STATE_FIELDS,
)
from linearizability.anomalies.catalogue import first_committed_reads, judge_shard, merge_first_reads
from linearizability.anomalies.context import Context
from linearizability.anomalies.finding import FINDINGS_SCHEMA, findings_from_rows, findings_to_arrow
from linearizability.anomalies.log import PartitionLog
from linearizability.anomalies.shard_rows import (
    SHARD_ROWS,
    operation_rows,
    position_rows,
    record_rows,
    shard_logs,
    state_rows,
)
from linearizability.anomalies.summary import (
    SUMMARY_FIELDS,
    Summary,
    context_of,
    judgement_of,
    merge_summaries,
    summarise,
)
from linearizability.history.reader import HistoryError, open_history
from linearizability.judgement import Judgement
from reports.spark.pieces import Piece, operations_between, pieces_of, read_piece
from reports.spark.session import EngineUnavailableError, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EngineUnavailableError", "judge_with_spark"]

_PIECE_COLUMNS: Final = "table string, file int, row_group int"
_PICKLED: Final = "part binary"
_FIRST_READS: Final = pa.schema([pa.field("transaction", pa.int64()), pa.field("read_ns", pa.int64())])
_JUDGED: Final = ("records", "positions", "states")
_JUDGED_FIELDS: Final = {
    "records": (*RECORD_FIELDS, *PLACE_FIELDS, "direction"),
    "positions": (*POSITION_FIELDS, *PLACE_FIELDS),
    "states": (*STATE_FIELDS, *PLACE_FIELDS),
}


def judge_with_spark(run_dir: Path, master: str | None = None) -> Judgement:
    """Judge the history of a run directory on Spark: the same judgement as `linearizability.check.judge`.

    `master` as `spark_session` takes it. Raises HistoryError or NotARunError for the history, EngineUnavailableError
    where Spark cannot be used, one line each.
    """
    run_dir = run_dir.resolve()
    history = open_history(run_dir)
    pieces = {name: pieces_of(history, name) for name in SUMMARY_FIELDS}
    with spark_session(master) as spark, _one_line_errors():
        summary = _summary(spark, run_dir, [piece for name in SUMMARY_FIELDS for piece in pieces[name]])
        context = context_of(history.run, history.table("faults"), summary)
        rows = _shard_rows(spark, run_dir, [piece for name in _JUDGED for piece in pieces[name]], context)
        context = _decided(rows, context)
        findings = _judge(rows, context)
        return judgement_of(summary, findings_from_rows(findings.toArrow().to_pylist()))


def _tasks(spark: "SparkSession", pieces: list[Piece]) -> "DataFrame":
    """The pieces as rows, one partition each, so that each is a task."""
    rows = [piece.fields for piece in pieces]
    frame = spark.createDataFrame(rows, _PIECE_COLUMNS)
    return frame.repartitionByRange(max(1, len(rows)), *frame.columns)


def _pieces_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Piece(row["table"], row["file"], row["row_group"])


def _summary(spark: "SparkSession", run_dir: Path, pieces: list[Piece]) -> Summary:
    """The first pass."""
    if not pieces:
        return Summary()
    parts = _tasks(spark, pieces).mapInArrow(partial(_summarise, run_dir=run_dir), _PICKLED).toArrow()
    return merge_summaries(pickle.loads(part) for part in parts["part"].to_pylist())  # noqa: S301 - our own tasks'


def _summarise(batches: Iterable[pa.RecordBatch], run_dir: Path) -> Iterator[pa.RecordBatch]:
    history = open_history(run_dir)
    for piece in _pieces_in(batches):
        tables = read_piece(history, piece, SUMMARY_FIELDS[piece.table])
        summary = merge_summaries(summarise(piece.table, table) for table in tables)
        yield pa.RecordBatch.from_pydict({"part": pa.array([pickle.dumps(summary)], pa.binary())})


def _shard_rows(spark: "SparkSession", run_dir: Path, pieces: list[Piece], context: Context) -> "DataFrame":
    """The second pass: every row that a check reads, with the operations it belongs to."""
    to_rows = partial(_to_rows, run_dir=run_dir, context=context)
    return _tasks(spark, pieces).mapInArrow(to_rows, _spark_schema(SHARD_ROWS))


def _to_rows(batches: Iterable[pa.RecordBatch], run_dir: Path, context: Context) -> Iterator[pa.RecordBatch]:
    history = open_history(run_dir)
    for piece in _pieces_in(batches):
        for table in read_piece(history, piece, _JUDGED_FIELDS[piece.table]):
            if not table.num_rows:
                continue
            if piece.table == "states":
                yield from state_rows(table).to_batches()
                continue
            is_records = piece.table == "records"
            rows = record_rows(table, lambda topic: context.rules(topic).compaction) if is_records else None
            yield from (position_rows(table) if rows is None else rows).to_batches()
            span = pc.min_max(table["op_id"]).as_py()
            operations = operations_between(history, span["min"], span["max"], OPERATION_FIELDS)
            yield from operation_rows(table, operations).to_batches()


def _judge(rows: "DataFrame", context: Context) -> "DataFrame":
    """The findings of every shard."""

    def judge(table: pa.Table) -> pa.Table:
        topic, partition = table["topic"][0].as_py(), table["partition"][0].as_py()
        return findings_to_arrow(judge_shard(shard_logs(table, context), context), topic, partition)

    return rows.groupBy("topic", "partition").applyInArrow(judge, schema=_spark_schema(FINDINGS_SCHEMA))


def _decided(rows: "DataFrame", context: Context) -> Context:
    """The context once every transaction whose commit is unknown has been looked for among what was read."""
    if not context.transactions.undecided.any():
        return context

    def look(table: pa.Table) -> pa.Table:
        found: dict[int, int] = {}
        for log in shard_logs(table, context):
            merge_first_reads(found, first_committed_reads(PartitionLog(log, context)))
        return pa.table([list(found.keys()), list(found.values())], schema=_FIRST_READS)

    reads = rows.groupBy("topic", "partition").applyInArrow(look, schema=_spark_schema(_FIRST_READS))
    first: dict[int, int] = {}
    for row in reads.toArrow().to_pylist():
        merge_first_reads(first, {row["transaction"]: row["read_ns"]})
    return replace(context, transactions=context.transactions.with_first_reads(first))


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """What a task says of a broken history, as an error of the driver's."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        told = re.search(r"HistoryError: (.+)", str(error))
        if told is None:
            raise
        raise HistoryError(told[1]) from None
