"""`kafkatrial sensitivity`: the share of seeded bugs that the suite detects."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

SECONDS = 60.0
EXAMPLES = (
    "kafkatrial sensitivity --list",
    "kafkatrial sensitivity --known-first --out DIR",
    "kafkatrial sensitivity log --seconds 120",
)


def sensitivity(  # noqa: PLR0917  a parameter is an option
    defect: Annotated[
        list[str] | None,
        typer.Argument(metavar="DEFECT", help="Names or areas of the defects to seed (default: all)."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="Seconds of computing on one core for each defect.")
    ] = SECONDS,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, metavar="N", help="Seed of the first trial.")] = 0,
    known_first: Annotated[
        bool, typer.Option("--known-first", help="Run the saved counterexample of a defect before its seeds.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, max=512, metavar="N", help="Number of processes (default: one per core).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for sensitivity.html and sensitivity.json (default: none)."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the defects and run nothing.")] = False,
) -> ExitCode:
    """Seed bugs into the reference broker, and count how many of them the suite detects."""
    from kafkatrial.sensing import SensitivityChoices, SensitivityRunner, list_defects, plan_sensitivity

    if listed:
        list_defects(tuple(defect or ()), as_json=as_json)
        return ExitCode.OK
    plan = plan_sensitivity(SensitivityChoices(tuple(defect or ()), seconds, first_seed, workers, known_first))
    return SensitivityRunner(plan, out, as_json=as_json).run()
