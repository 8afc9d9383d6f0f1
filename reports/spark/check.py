"""The Spark engine: the shards of a history (`linearizability.shards`), as tasks of a Python Data Source.

Each task reads files directly, with the code of the local engine, and returns its findings; nothing is shuffled, and
the driver receives summaries and findings, never records. If a history has no shards yet, tasks divide it first.
The files must be readable by the workers under the same path.
"""

import contextlib
from pathlib import Path

from linearizability.history.reader import open_history
from linearizability.judgement import Judgement
from linearizability.shards.engine import judge_layout, laid_out
from reports.spark.errors import EngineFailedError, EngineUnavailableError, spark_errors
from reports.spark.progress import Listener, watching
from reports.spark.session import spark_session
from reports.spark.tasks import tasks_on

__all__ = ["EngineFailedError", "EngineUnavailableError", "judge_with_spark"]


def judge_with_spark(run_dir: Path, master: str | None = None, on_progress: Listener | None = None) -> Judgement:
    """Judge the history of a run directory on Spark: the same judgement as `linearizability.check.judge`.

    `master` is that of `spark_session`; `on_progress` receives the progress. Raises HistoryError for the history,
    EngineUnavailableError if Spark cannot be used, EngineFailedError if it failed; each in one line.
    """
    history = open_history(run_dir.resolve())
    with spark_session(master) as spark, spark_errors(), watching(spark, on_progress) as watch:
        run = tasks_on(spark)
        with contextlib.ExitStack() as stack:
            with watch.step("sorting by topic partition"):
                layout = stack.enter_context(laid_out(history, run))
            with watch.step("judging topic partitions", layout.records):
                return judge_layout(history, layout, run)
