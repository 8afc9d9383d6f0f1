"""`kafkatrial matrix`: the verdicts of several runs as one table of targets by requirements."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

EXAMPLES = (
    "kafkatrial matrix RUN_DIR --out docs",
    "kafkatrial matrix LAPTOP/runs SERVER/runs --out site",
    "kafkatrial matrix .kafkatrial/runs --latest",
)


def matrix(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_DIR", help="Directories of `kafkatrial run`, or directories that hold several."),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory for the pages, which may have other files (default: a new one in .kafkatrial/reports).",
        ),
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Let the latest run of a target decide instead of the worst verdict.")
    ] = False,
) -> ExitCode:
    """Make a table of targets by requirements from runs, as HTML and Markdown, with a badge for each target."""
    from kafkatrial.matrices import make_matrix

    return make_matrix(runs, out, latest=latest)
