"""`kafkatrial expectations`: files of known violations, kept up to date by runs."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.commands.help_format import Command, CommandGroup, examples_text
from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import TARGETS_HELP, use_recipes

EXAMPLES = (
    "kafkatrial expectations update RUN_DIR",
    "kafkatrial expectations update RUN_DIR --file known-violations.toml",
)
_UPDATE_EXAMPLES = (
    *EXAMPLES,
    "kafkatrial expectations update RUN_DIR --targets brokers.toml",
)

expectations_app = typer.Typer(cls=CommandGroup, no_args_is_help=False)


@expectations_app.callback(epilog=examples_text(EXAMPLES))
def expectations() -> None:
    """Maintain files of known violations, with which a run fails only on changes."""


@expectations_app.command(cls=Command, epilog=examples_text(_UPDATE_EXAMPLES))
def update(
    run: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory of `kafkatrial run`.")],
    *,
    target: Annotated[
        str | None, typer.Option(metavar="KIND[:VERSION]", help="Target of the run to update (default: every target).")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to update or create (default: expectations/TARGET.toml, beside the file of a recipe).",
        ),
    ] = None,
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
) -> ExitCode:
    """Add new violations of a run to a file of expectations, and remove those that no longer occur."""
    from kafkatrial.expected import update_expectations

    use_recipes(recipes)
    return update_expectations(run, target, file)
