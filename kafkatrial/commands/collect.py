"""`kafkatrial collect`: histories that `chaos --history-topic` has sent, back from the topic into run directories."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.commands.engine import SparkConf
from kafkatrial.exit_codes import ExitCode
from linearizability.printable import printable


def collect(
    folder: Annotated[Path, typer.Argument(help="Where the run directories go, each by the name of its run.")],
    *,
    history_topic: Annotated[str, typer.Option(metavar="T", help="The topic that the histories were sent to.")],
    history_bootstrap: Annotated[str, typer.Option(metavar="HOST:PORT", help="Of its Kafka.")],
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's: local[*], spark://…, yarn, k8s://…, sc://….")
    ] = None,
    spark_conf: SparkConf = None,
) -> ExitCode:
    """Read histories back from a topic, on Spark."""
    from kafkatrial.saved_histories import spark_settings
    from reports.spark.session import spark_session

    folder.mkdir(parents=True, exist_ok=True)
    with spark_session(master, spark_settings(spark_conf or ()), folder / "spark.log") as spark:
        from reports.spark.topic import collect_runs  # which cannot be imported without PySpark

        for path in collect_runs(spark, history_bootstrap, history_topic, folder):
            typer.echo(printable(path))
    return ExitCode.OK
