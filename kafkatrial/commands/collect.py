"""`kafkatrial collect`: run directories from the histories that `chaos --history-topic` has sent to a topic."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.commands.engine import SparkConf
from kafkatrial.exit_codes import ExitCode
from linearizability.printable import printable

EXAMPLES = ("kafkatrial collect DIR --history-topic T --history-bootstrap HOST:PORT",)


def collect(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory for the run directories, each named after its run.")
    ],
    *,
    history_topic: Annotated[str, typer.Option(metavar="TOPIC", help="Topic that the histories were sent to.")],
    history_bootstrap: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Bootstrap address of the Kafka that has the topic.")
    ],
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Spark master: local[*], spark://…, yarn, k8s://… or sc://… (default: local[*])."
        ),
    ] = None,
    spark_conf: SparkConf = None,
) -> ExitCode:
    """Read histories from a topic into run directories, with Spark."""
    from kafkatrial.saved_histories import spark_settings
    from reports.spark.session import spark_session

    folder.mkdir(parents=True, exist_ok=True)
    with spark_session(master, spark_settings(spark_conf or ()), folder / "spark.log") as spark:
        from reports.spark.topic import collect_runs  # imports PySpark

        for path in collect_runs(spark, history_bootstrap, history_topic, folder):
            typer.echo(printable(path))
    return ExitCode.OK
