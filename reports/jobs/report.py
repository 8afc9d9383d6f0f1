"""A report of one or several runs: every table, written as Parquet and CSV.

The caller passes a draft directory to `write_tables`, so that no directory has an incomplete report.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from linearizability.judgement import Judgement
from reports.jobs.catalogue import JOBS
from reports.jobs.comparison import CHANGES, TREND, change_rows, trend_rows
from reports.jobs.definition import Table
from reports.jobs.engine import Engine, compute
from reports.jobs.figures import (
    ANOMALIES,
    EVIDENCE,
    RUNS,
    anomaly_rows,
    evidence_rows,
    figures_of,
    run_row,
    tables_of_run,
)
from reports.jobs.in_force import Period
from reports.jobs.inputs import Run, open_runs

TABLES: Final[tuple[Table, ...]] = (RUNS, ANOMALIES, EVIDENCE, TREND, CHANGES, *JOBS)
"""Every table of a report, in the order of the documentation."""

Judge = Callable[[Path], Judgement]
OnProgress = Callable[[object], None]
"""Function that receives the name of a step, or its progress."""


@dataclass(frozen=True, slots=True)
class Report:
    """The tables and judgements of some runs."""

    runs: tuple[Run, ...]
    judgements: tuple[Judgement, ...]
    ends_ns: tuple[int, ...]
    periods: tuple[tuple[Period, ...], ...]
    tables: Mapping[str, pa.Table]
    """The tables of TABLES, by name."""

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table."""
        found: list[dict[str, Any]] = self.tables[name].to_pylist()
        return found


def make_report(
    run_dirs: Mapping[Path, str],
    scratch: Path,
    judge: Judge,
    engine: Callable[[], AbstractContextManager[Engine]],
    progress: OnProgress,
) -> Report:
    """Judge some runs and compute every table.

    `run_dirs` maps directories to names of runs; for an empty name the run_id is used.

    Raises HistoryError or NotARunError for a run, and the errors of `judge` and the engine, each in one line.
    """
    progress("opening runs")
    runs = open_runs(run_dirs, scratch)
    judgements = []
    for run in runs:
        progress(f"anomalies of {run.name}")
        judgements.append(judge(run.history.run_dir))
    with engine() as opened:
        computed = compute(opened, runs, progress)
    tables_by_run = [tables_of_run(computed.tables, run.name) for run in runs]
    run_rows = [
        run_row(run, judgement, end_ns, figures_of(tables))
        for run, judgement, end_ns, tables in zip(runs, judgements, computed.end_ns, tables_by_run, strict=True)
    ]
    judged = list(zip(runs, judgements, strict=True))
    other_rows = {
        RUNS: run_rows,
        ANOMALIES: [row for run, judgement in judged for row in anomaly_rows(run.name, judgement)],
        EVIDENCE: [row for run, judgement in judged for row in evidence_rows(run.name, judgement)],
        TREND: list(trend_rows(run_rows, judgements)),
        CHANGES: list(change_rows([(run.name, run.info) for run in runs])),
    }
    tables = {table.name: pa.Table.from_pylist(rows, table.schema) for table, rows in other_rows.items()}
    return Report(tuple(runs), tuple(judgements), computed.end_ns, computed.periods, {**tables, **computed.tables})


def write_tables(report: Report, directory: Path) -> None:
    """Write every table as `NAME.parquet` and `NAME.csv`. Raises OSError."""
    directory.mkdir(parents=True)
    for table in TABLES:
        rows = report.tables[table.name]
        pq.write_table(rows, directory / f"{table.name}.parquet")
        pa_csv.write_csv(rows, directory / f"{table.name}.csv")
