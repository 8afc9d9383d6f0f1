"""`kafkatrial sensitivity`: whether the suite catches the bugs that it is for."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

SECONDS = 60.0


def sensitivity(  # noqa: PLR0917  a parameter is an option
    defect: Annotated[
        list[str] | None, typer.Argument(metavar="[DEFECT]...", help="Names or areas; all if none is named.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="For each defect, of computing on one core.")
    ] = SECONDS,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, metavar="N", help="Seed of the first trial.")] = 0,
    known_first: Annotated[
        bool, typer.Option("--known-first", help="Try the saved counterexample of a defect before its seeds.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, max=512, metavar="N", help="Processes; one for each core, if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where sensitivity.html and sensitivity.json are written.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only list the defects.")] = False,
) -> ExitCode:
    """Seed bugs into the reference broker, and count which of them the suite catches."""
    from kafkatrial.sensing import Choices, Sensing, list_defects, plan_sensitivity

    if listed:
        list_defects(tuple(defect or ()), as_json=as_json)
        return ExitCode.OK
    plan = plan_sensitivity(Choices(tuple(defect or ()), seconds, first_seed, workers, known_first))
    return Sensing(plan, out, as_json=as_json).run()
