"""`kafkatrial replay`: one saved trial on one target."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import TARGETS_HELP, use_recipes

EXAMPLES = (
    "kafkatrial replay failure.json --target apache-kafka:4.3.1",
    "kafkatrial replay trial.json --target simulation",
)


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Saved trial: failure.json of simulate or chaos, trial.json of a failed requirement.",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="KIND[:VERSION]", help="Target of the trial: simulation, or one that `kafkatrial targets` lists."
        ),
    ] = "reference",
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for the history (default: a new one in .kafkatrial/replays)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> ExitCode:
    """Run a saved trial on any target: a counterexample on real Kafka, a failure of chaos in the simulation."""
    from kafkatrial.replaying import replay_file

    use_recipes(recipes)
    return replay_file(file, target, out, as_json=as_json)
