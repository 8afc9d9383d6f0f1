"""`kafkatrial report`: what runs did over time, and what changed from one to the next, as tables and one page."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.commands.engine import Engine, Master, SparkConf, refuse_spark_options
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR...",
            help="Run directories, or directories that hold several. Two are compared; more give the trend over all.",
        ),
    ],
    *,
    engine: Annotated[Engine, typer.Option(help="spark: for histories larger than this machine.")] = Engine.LOCAL,
    master: Master = None,
    spark_conf: SparkConf = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of the report; .kafkatrial/reports/<time>.")
    ] = None,
    memory_limit_mb: Annotated[
        int | None,
        typer.Option("--memory-limit", min=64, metavar="MB", help="For SQL on the local engine; a fourth by default."),
    ] = None,
) -> ExitCode:
    """Tell what happened in runs: latency, availability, lag, loss by fault, leaders, and what changed."""
    from kafkatrial.reporting import report_runs
    from kafkatrial.saved_histories import Spark, spark_settings

    if engine is Engine.SPARK:
        if memory_limit_mb is not None:
            raise UsageError("--memory-limit is the local engine's; Spark's is --spark-conf spark.driver.memory=…")
        return report_runs(runs, out, spark=Spark(master, spark_settings(spark_conf or ())))
    refuse_spark_options(engine, master, spark_conf)
    return report_runs(runs, out, memory_mb=memory_limit_mb)
