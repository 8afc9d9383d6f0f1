"""`kafkatrial spark-job`: what `spark-submit` needs to judge histories on a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode


def spark_job(
    folder: Annotated[Path, typer.Argument(help="Where to write them; it is made.")],
) -> ExitCode:
    """Write a zip of our code and a program, for `spark-submit --py-files`."""
    from reports.spark.shipping import write_job

    try:
        code, program = write_job(folder)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    typer.echo(f"spark-submit --py-files {code} {program} RUN…")
    return ExitCode.OK
