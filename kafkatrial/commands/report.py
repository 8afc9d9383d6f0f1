"""`kafkatrial report`: a page and tables with the figures of runs, and with the changes between them."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.commands.engine import Engine, Master, SparkConf, reject_spark_options
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

EXAMPLES = (
    "kafkatrial report RUN_DIR",
    "kafkatrial report LAST_NIGHT TONIGHT",
    "kafkatrial report RUN_DIR --engine spark --out DIR",
)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR",
            help="Run directories, or directories that contain several. Two runs are compared; of three or more, the "
            "trend is shown.",
        ),
    ],
    *,
    engine: Annotated[
        Engine, typer.Option(help="Engine for the tables: DuckDB in this process, or Spark for larger histories.")
    ] = Engine.LOCAL,
    master: Master = None,
    spark_conf: SparkConf = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for the report (default: a new one in .kafkatrial/reports)."),
    ] = None,
    memory_limit_mb: Annotated[
        int | None,
        typer.Option(
            "--memory-limit",
            min=64,
            metavar="MB",
            help="Megabytes for the local engine (default: a quarter of the machine's memory).",
        ),
    ] = None,
) -> ExitCode:
    """Report on runs: latency, availability, lag, loss by fault, leaders, and changes between runs."""
    from kafkatrial.reporting import report_runs
    from kafkatrial.saved_histories import SparkOptions, spark_settings

    if engine is Engine.SPARK:
        if memory_limit_mb is not None:
            raise UsageError("--memory-limit needs --engine local; for Spark use --spark-conf spark.driver.memory=…")
        return report_runs(runs, out, spark=SparkOptions(master, spark_settings(spark_conf or ())))
    reject_spark_options(engine, master, spark_conf)
    return report_runs(runs, out, memory_mb=memory_limit_mb)
