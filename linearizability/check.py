"""Local engine that judges a history on this machine.

If a history has fewer than `LARGE_ROWS` records, its topic partitions are judged one after another in this process.
Memory holds `records` and `positions` as compact arrays (about 50 bytes a record, `anomalies.gather`), and the working
set of one shard at a time. The tables of a larger history are sorted once by topic partition. Then several processes
judge it, each of which holds one part in memory (`shards`). A history that breaks a rule of the format is rejected
before it is judged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import OPERATION_FIELDS, numbers, operation_columns
from linearizability.anomalies.catalogue import judge_run
from linearizability.anomalies.gather import ShardRows
from linearizability.anomalies.promise import topic_rules
from linearizability.anomalies.summary import (
    SUMMARY_FIELDS,
    Summary,
    context_of,
    judgement_of,
    merge_summaries,
    settings_of,
    summarise,
)
from linearizability.history.reader import History, open_history
from linearizability.history.validate import validate
from linearizability.judgement import Judgement
from linearizability.shards.engine import judge_in_shards
from linearizability.shards.running import Processes

LARGE_ROWS: Final = 2_000_000
"""The number of records from which it is faster to sort a history and judge it in worker processes."""


def judge(run_dir: Path) -> Judgement:
    """Judge the history of a run directory. Raises HistoryError or NotARunError with a message of one line."""
    history = open_history(run_dir)
    if history.count("records") >= LARGE_ROWS:
        with Processes() as run:
            return judge_in_shards(history, run)
    validate(history)
    return judge_history(history)


def judge_history(history: History) -> Judgement:
    """Judge a history that is known to keep the rules of the format."""
    table, summary = _operations(history)
    settings = settings_of(history.run, history.table("faults"))
    rows = ShardRows(
        _HistorySource(history), numbers(table["op_id"], 0), lambda topic: topic_rules(settings, topic).compaction
    )
    summary = merge_summaries([summary, rows.records, rows.positions, _small_tables(history)])
    context = context_of(history.run, settings, summary)
    operations = operation_columns(table, context.transactions, context.clients)
    del table
    decided = context.transactions.with_first_reads(rows.first_reads(operations, context))
    context = replace(context, transactions=decided)
    findings = judge_run(rows.judged(operations, context), summary.transactional, context)
    return judgement_of(history.run, summary, findings)


def _operations(history: History) -> tuple[pa.Table, Summary]:
    """Return the operations, sorted by op_id, and their summary."""
    columns = sorted({*OPERATION_FIELDS, *SUMMARY_FIELDS["operations"]})
    kept: list[pa.Table] = []
    summaries: list[Summary] = []
    for table in history.batches("operations", columns):
        summaries.append(summarise("operations", table))
        own = table.select(list(OPERATION_FIELDS))
        for name in ("outcome", "isolation", "f", "error"):
            own = own.set_column(own.column_names.index(name), name, pc.dictionary_encode(own[name]))
        kept.append(own)
    operations = pa.concat_tables(kept).unify_dictionaries()
    op_ids = numbers(operations["op_id"], 0)
    if np.any(np.diff(op_ids) < 0):
        operations = operations.take(np.argsort(op_ids, kind="stable"))
    return operations, merge_summaries(summaries)


def _small_tables(history: History) -> Summary:
    names = ("states", "offsets", "inputs", "assignments")
    return merge_summaries(
        summarise(name, table) for name in names for table in history.batches(name, SUMMARY_FIELDS[name])
    )


@dataclass(frozen=True, slots=True)
class _HistorySource:
    """All rows of a history."""

    history: History

    def count(self, name: str) -> int:
        return self.history.count(name)

    def batches(self, name: str, columns: Sequence[str]) -> Iterable[pa.Table]:
        return self.history.batches(name, columns)
