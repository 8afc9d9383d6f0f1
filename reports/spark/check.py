"""The Spark engine: the shards of a history (`linearizability.shards`), as tasks of a Python Data Source.

Each task reads files by itself, with the code of the local engine, and says what it found; nothing is shuffled, and
the driver sees summaries and findings, never a record. A history that is not laid out by topic partition yet is laid
out first, by tasks too. A run whose files lie on a cluster's shared path is read, and laid out, there by the workers.
"""

import contextlib
from pathlib import Path

from linearizability.history.reader import open_history
from linearizability.judgement import Judgement
from linearizability.shards.engine import judge_layout, laid_out
from reports.spark.errors import EngineFailedError, EngineUnavailableError, told_in_one_line
from reports.spark.progress import Tell, watching
from reports.spark.session import spark_session
from reports.spark.tasks import tasks_on

__all__ = ["EngineFailedError", "EngineUnavailableError", "judge_with_spark"]


def judge_with_spark(run_dir: Path, master: str | None = None, tell: Tell | None = None) -> Judgement:
    """Judge the history of a run directory on Spark: the same judgement as `linearizability.check.judge`.

    `master` as `spark_session` takes it; `tell` is told how far it is. Raises HistoryError or NotARunError for the
    history, EngineUnavailableError where Spark cannot be used, EngineFailedError where it failed; one line each.
    """
    history = open_history(run_dir.resolve())
    with spark_session(master) as spark, told_in_one_line(), watching(spark, tell) as watch:
        run = tasks_on(spark)
        with contextlib.ExitStack() as stack:
            with watch.step("laying out by topic partition"):
                layout = stack.enter_context(laid_out(history, run))
            with watch.step("judging topic partitions", layout.records):
                return judge_layout(history, layout, run)
