"""`kafkatrial requirements`: the requirements that clusters are checked against, with sources."""

import json
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

EXAMPLES = ("kafkatrial requirements", "kafkatrial requirements produce --json")


def requirements(
    requirement: Annotated[
        list[str] | None,
        typer.Argument(metavar="REQUIREMENT", help="Ids or areas of the requirements (default: all)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array instead of a table.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables instead.")] = False,
) -> ExitCode:
    """List the requirements: id, level, promise, source."""
    if as_json and as_markdown:
        raise UsageError("--json and --markdown: choose one")
    from kafkatrial.console import show, stdout_console
    from kafkatrial.requirement_tables import as_objects, render_markdown, render_table
    from kafkatrial.selection import select_requirements

    selected = select_requirements(tuple(requirement or ()), "may")
    if as_json:
        typer.echo(json.dumps(as_objects(selected), indent=1))
    elif as_markdown:
        typer.echo(render_markdown(selected))
    else:
        show(stdout_console(), render_table(selected))
    return ExitCode.OK
