"""`kafkatrial spark-job`: the two files that `spark-submit` needs to judge histories on a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

EXAMPLES = ("kafkatrial spark-job DIR",)


def spark_job(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory for the two files; created if it does not exist.")
    ],
) -> ExitCode:
    """Write the code and the program with which `spark-submit` judges histories on a cluster."""
    from reports.spark.shipping import write_job

    try:
        code, program = write_job(folder)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    typer.echo(f"spark-submit --py-files {code} {program} RUN…")
    return ExitCode.OK
