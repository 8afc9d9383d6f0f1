"""Interface of an engine, and the execution of the jobs: the same steps, in the same order, on every engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearizability.history.schema import SCHEMAS
from reports.jobs.catalogue import STEPS
from reports.jobs.definition import SECOND_NS, FaultTimes, Job
from reports.jobs.in_force import FAULT_SLOTS, Fault, Period, fault_slots, label_within, periods_of, slot_seconds
from reports.jobs.inputs import Run
from reports.jobs.views import ONLY_TOPIC_IDS, RAW, RUN_FACTS, TIMES, raw, span_sql, topic_ids_sql, views

SMALL_ROWS: Final = 200_000
"""Tables with at most this number of rows in all runs are passed from memory: opening many small files is slow."""
_SQL_TYPES: Final = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING", pa.bool_(): "BOOLEAN"}


class Engine(Protocol):
    """Executor of SQL over Parquet files. Every error has a message of one line."""

    def add_files(self, name: str, schema: pa.Schema, paths: Sequence[Path]) -> None:
        """Register Parquet files of one schema under a name."""

    def add_table(self, name: str, table: pa.Table) -> None:
        """Register a small table under a name."""

    def add_view(self, name: str, sql: str) -> None:
        """Register a query under a name; it runs again wherever it is used."""

    def add_stage(self, name: str, sql: str) -> None:
        """Register the rows of a query, which runs once, under a name."""

    def query(self, sql: str) -> pa.Table:
        """Return the rows of a query."""

    def begin(self, step: str) -> None:
        """Begin a step; an engine that reports progress reports it under this name."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The results of the jobs."""

    tables: dict[str, pa.Table]
    """By job, with the columns of `Job.written`."""
    end_ns: tuple[int, ...]
    """By run, the time from its first event to its last."""
    periods: tuple[tuple[Period, ...], ...]
    """By run, the periods of faults in force."""


def compute(engine: Engine, runs: Sequence[Run], progress: Callable[[object], None]) -> Computed:
    """Run every job over some runs."""
    for name in RAW:
        _add_raw(engine, name, runs)

    def begin(step: str) -> None:
        progress(step)
        engine.begin(step)

    begin("begin and end of runs")
    spans = {row["run"]: (row["first_ns"], row["last_ns"]) for row in engine.query(span_sql()).to_pylist()}
    origins = [spans[run.number][0] for run in runs]
    ends = [spans[run.number][1] - spans[run.number][0] for run in runs]
    periods = [periods_of(_faults(run, origin), end) for run, origin, end in zip(runs, origins, ends, strict=True)]
    slots_s = [slot_seconds(end) for end in ends]
    slots = [fault_slots(*facts) for facts in zip(range(len(runs)), periods, slots_s, strict=True)]
    engine.add_table("fault_slots", pa.concat_tables([FAULT_SLOTS.empty_table(), *slots]))
    has_positions = [not run.history.is_absent("positions") for run in runs]
    facts = [range(len(runs)), origins, [slot_s * SECOND_NS for slot_s in slots_s], has_positions]
    engine.add_table("run_facts", pa.table([list(column) for column in facts], schema=RUN_FACTS))
    ids = engine.query(topic_ids_sql())
    engine.add_table("only_topic_ids", _only_ids(ids))
    lacks_ids = ids["topic_id"].null_count not in (0, ids.num_rows)
    for name, sql in views(lacks_ids=lacks_ids, lacks_positions=not all(has_positions)):
        engine.add_view(name, sql)
    tables: dict[str, pa.Table] = {}
    for step in STEPS:
        begin(step.name.replace("_", " "))
        if isinstance(step, Job):
            tables[step.name] = _written(step, engine.query(_typed(step)), [run.name for run in runs], periods)
        else:
            engine.add_stage(step.name, step.sql)
    return Computed(tables, tuple(ends), tuple(map(tuple, periods)))


def _add_raw(engine: Engine, name: str, runs: Sequence[Run]) -> None:
    """Register a raw table of all runs: read once if it is small, otherwise for every query."""
    schema = SCHEMAS[name].insert(0, pa.field("run", pa.int32()))
    rows = sum(pq.read_metadata(path).num_rows for run in runs for path in run.files[name])
    if rows <= SMALL_ROWS:
        small = [
            table.add_column(0, schema.field(0), pa.array([run.number] * table.num_rows, pa.int32()))
            for run in runs
            for table in run.history.batches(name)
        ]
        engine.add_table(raw(name), pa.concat_tables([schema.empty_table(), *small]))
        return
    columns = ", ".join(f"r.{column}" for column in SCHEMAS[name].names)
    parts: list[str] = []
    for run in runs:
        if run.files[name]:
            table_of_run = f"{raw(name)}_{run.number}"
            engine.add_files(table_of_run, SCHEMAS[name], run.files[name])
            parts.append(f"SELECT {run.number} AS run, {columns} FROM {table_of_run} AS r")
    engine.add_view(raw(name), " UNION ALL ".join(parts))


def _faults(run: Run, origin_ns: int) -> list[Fault]:
    begin, end = TIMES["faults"]
    rows = run.history.table("faults", ["kind", begin, end]).to_pylist()
    return [
        Fault(row["kind"], row[begin] - origin_ns, None if row[end] is None else row[end] - origin_ns) for row in rows
    ]


def _only_ids(found: pa.Table) -> pa.Table:
    """Return the topic ids of the names that have exactly one id in a run (ONLY_TOPIC_IDS)."""
    rows = [row for row in found.to_pylist() if row["topic_id"] is not None]
    rows.sort(key=lambda row: (row["run"], row["topic"]))
    by_name = [list(same) for _, same in groupby(rows, key=lambda row: (row["run"], row["topic"]))]
    return pa.Table.from_pylist([same[0] for same in by_name if len(same) == 1], ONLY_TOPIC_IDS)


def _typed(job: Job) -> str:
    """Return the job's SQL with the types of its schema."""
    columns = ", ".join(f"CAST({field.name} AS {_SQL_TYPES[field.type]}) AS {field.name}" for field in job.computed)
    return f"SELECT {columns} FROM ({job.sql}) AS result"


def _written(job: Job, rows: pa.Table, run_ids: Sequence[str], periods: Sequence[Sequence[Period]]) -> pa.Table:
    """Return the table of a job as it is written: sorted, with run ids and the faults in force."""
    rows = _sorted(rows.cast(job.computed), ("run", *job.order))
    columns = [pa.array(run_ids, pa.string()).take(rows["run"].combine_chunks()), *rows.columns[1:]]
    if job.fault_times:
        columns.append(_labels(job.fault_times, rows, periods))
    return pa.table(columns, schema=job.schema)


def _sorted(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """Sort rows by columns, null first. Not in SQL, because Spark computes a query twice to sort its result."""
    keys: dict[str, pa.ChunkedArray] = {}
    for name in order:
        keys |= {f"{name} is known": pc.is_valid(rows[name]), name: rows[name]}
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def _labels(fault_times: FaultTimes, rows: pa.Table, periods: Sequence[Sequence[Period]]) -> pa.Array:
    """Return the faults in force for each row. They are looked up once for all rows of a run with the same times."""
    begin_name, end_name = fault_times.value
    begins = pc.if_else(pc.is_valid(rows[begin_name]), rows[begin_name], 0)
    keys = list(zip(rows["run"].to_pylist(), begins.to_pylist(), rows[end_name].to_pylist(), strict=True))
    scale, more = (SECOND_NS, 1) if fault_times is FaultTimes.SECOND else (1, 0)
    labels = {
        (run, begin, end): label_within(periods[run], begin * scale, (end + more) * scale)
        for run, begin, end in set(keys)
    }
    return pa.array([labels[key] for key in keys], pa.string())
