"""`kafkatrial doctor`: the clusters and faults that this machine can provide, and how to get the others."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import TARGETS_HELP, use_recipes

EXAMPLES = ("kafkatrial doctor",)


def doctor(
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
) -> ExitCode:
    """Check which clusters and faults this machine can provide, and how to get the others."""
    from fixtures.targets.machine import inspect_machine
    from kafkatrial.console import show, stdout_console
    from kafkatrial.target_tables import render_prerequisites

    use_recipes(recipes)
    show(stdout_console(), render_prerequisites(inspect_machine()))
    return ExitCode.OK
