"""`kafkatrial export`: a history in the other of its two public forms, a run directory or NDJSON."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.printable import printable

NDJSON_SUFFIX = ".ndjson"


def export(
    history: Annotated[Path, typer.Argument(help="A run directory, or a file of a Kafka history that `check` reads.")],
    target: Annotated[Path, typer.Argument(help="A file NAME.ndjson, or a run directory that is not there yet.")],
) -> ExitCode:
    """Write a history as NDJSON or as a run directory."""
    from linearizability.check_file import import_history
    from linearizability.history.reader import open_history
    from linearizability.history.saving import save
    from linearizability.history.validate import validate
    from linearizability.importers.ndjson import write_ndjson

    if target.exists():
        raise UsageError(f"{target}: is there already; name another file or directory")
    if history.is_file():
        found = import_history(history)
    else:
        found = open_history(history)
        validate(found)
    if target.suffix == NDJSON_SUFFIX:
        try:
            with target.open("x", encoding="utf-8") as file:
                write_ndjson(found, file)
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror}") from None
    else:
        save(found, target)
    typer.echo(printable(target))
    return ExitCode.OK
