"""`kafkatrial export`: conversion of a history between its two public formats, run directory and NDJSON."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.printable import printable

NDJSON_SUFFIX = ".ndjson"
EXAMPLES = (
    "kafkatrial export RUN_DIR history.ndjson",
    "kafkatrial export history.edn RUN_DIR",
)


def export(
    history: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="Run directory, or a file of a Kafka history that `check` reads.")
    ],
    destination: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Path to write: NAME.ndjson, or a new run directory.")
    ],
) -> ExitCode:
    """Convert a history to NDJSON or to a run directory."""
    from linearizability.check_file import import_history
    from linearizability.history.reader import open_history
    from linearizability.history.saving import save
    from linearizability.history.validate import validate
    from linearizability.importers.ndjson import write_ndjson

    if destination.exists():
        raise UsageError(f"{destination}: already exists; name another file or directory")
    if history.is_file():
        found = import_history(history)
    else:
        found = open_history(history)
        validate(found)
    if destination.suffix == NDJSON_SUFFIX:
        try:
            with destination.open("x", encoding="utf-8") as file:
                write_ndjson(found, file)
        except OSError as error:
            raise UsageError(f"{destination}: cannot be written: {error.strerror}") from None
    else:
        save(found, destination)
    typer.echo(printable(destination))
    return ExitCode.OK
