"""Reports of runs. Each report has a new directory, which receives the page and the tables once both are complete."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.text import Text

from chaos.campaign.interruption import interruptible
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import CommandError, UsageError
from kafkatrial.exit_codes import ExitCode
from kafkatrial.run_directory import make_report_directory
from kafkatrial.saved_histories import EXIT_CODES, SparkOptions, combine, histories_in, unfinished_reasons
from kafkatrial.spark_progress import spark_progress
from linearizability.history.run import RUN_FILE
from linearizability.judgement import Verdict
from reports.jobs.engine import Engine
from reports.jobs.report import Judge, OnProgress, Report, make_report, write_tables
from reports.runs_page import FILE_NAME, runs_page
from reports.runs_terminal import render_report
from reports.spark.errors import EngineFailedError

SPARK_LOG = "spark.log"
_DRAFT = ".draft"
_TABLES = "tables"
_HISTORIES = "histories/"
"""Directory of the histories in a run of the suite. The names of the histories in the report omit it."""

JudgeAndEngine = tuple[Judge, Callable[[], AbstractContextManager[Engine]]]
"""The judge of a run, and the factory of the engine for the tables."""


def report_runs(
    directories: Sequence[Path],
    out: Path | None = None,
    *,
    spark: SparkOptions | None = None,
    memory_mb: int | None = None,
) -> ExitCode:
    """Make a report of the runs in some directories, show its main figures, and return the worst verdict's exit code.

    The report is computed by DuckDB with `memory_mb`, or by Spark. Raises CommandError, HistoryError and the errors of
    an engine, each in one line. After an error nothing is left behind, except Spark's log if Spark failed.
    """
    run_dirs = _runs_in(directories)
    unfinished = [reason for directory in directories for reason in unfinished_reasons(directory)]
    if not run_dirs and not unfinished:
        raise UsageError(f"{directories[0]}: nothing to report: it holds no {RUN_FILE}")
    if not run_dirs:  # the run was killed before its first history
        show_unfinished(unfinished)
        return EXIT_CODES[Verdict.UNKNOWN]
    with interruptible(), _draft(out) as (place, draft):
        scratch = draft / "scratch"
        with spark_progress(doing="starting") as progress:
            opened = _on_spark(spark, place / SPARK_LOG, progress) if spark else _locally(scratch / "local", memory_mb)
            with opened as (judge, engine):
                made = make_report(run_dirs, scratch, judge, engine, progress)
            progress("writing the report")
            _write(made, draft / "whole", place)
    show(stdout_console(), render_report(made, place))
    show_unfinished(unfinished)
    judgements = {run.name: judgement for run, judgement in zip(made.runs, made.judgements, strict=True)}
    return EXIT_CODES[combine(judgements, unfinished).verdict]


def show_unfinished(reasons: Sequence[str]) -> None:
    """Print the reasons for missing histories."""
    console = stdout_console()
    for reason in reasons:
        show(console, Text(f"unknown because {reason}", "yellow"))


def _runs_in(directories: Sequence[Path]) -> dict[Path, str]:
    """Return the name of every run directory: its path below the given directory; empty if it is given itself."""
    found: dict[Path, str] = {}
    for directory in directories:
        if directory.is_file():
            raise UsageError(f"{directory}: not a run directory; convert the file with `kafkatrial export`")
        for name, path in histories_in(directory).items():
            if path.resolve() in found:
                raise UsageError(f"{path}: named twice")
            found[path.resolve()] = name.removeprefix(_HISTORIES)
    return found


@contextmanager
def _locally(scratch: Path, memory_mb: int | None) -> Iterator[JudgeAndEngine]:
    from linearizability.check import judge
    from reports.local.engine import local_engine

    yield judge, partial(local_engine, scratch, memory_mb)


@contextmanager
def _on_spark(spark: SparkOptions, log: Path, progress: OnProgress) -> Iterator[JudgeAndEngine]:
    """Start Spark once, for the judge and the engine."""
    from reports.spark.check import judge_with_spark
    from reports.spark.jobs import spark_engine
    from reports.spark.session import spark_session

    with spark_session(spark.master, spark.settings, log):
        yield partial(judge_with_spark, on_progress=progress), partial(spark_engine, on_progress=progress)


@contextmanager
def _draft(out: Path | None) -> Iterator[tuple[Path, Path]]:
    """Create the directory of the report, and one inside it for incomplete files."""
    place = make_report_directory(out, now=datetime.now(UTC))
    draft = place / _DRAFT
    try:
        draft.mkdir()
        yield place, draft
    except EngineFailedError:  # its message names the log
        raise
    except BaseException:
        (place / SPARK_LOG).unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if not any(place.iterdir()):
            place.rmdir()


def _write(report: Report, draft: Path, place: Path) -> None:
    try:
        write_tables(report, draft / _TABLES)
        (draft / FILE_NAME).write_text(runs_page(report), encoding="utf-8")
        for name in (_TABLES, FILE_NAME):
            (draft / name).rename(place / name)
    except OSError as error:
        raise CommandError(f"{place}: the report cannot be written: {error.strerror or error}") from None
