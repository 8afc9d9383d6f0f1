"""`kafkatrial simulate`: the reference cluster in virtual time, by seeds."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

DEFAULT_SEEDS = "0..999"


def simulate(  # noqa: PLR0917  a parameter is an option
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="A..B",
            help=f"From A to B, or one seed. Without --minutes {DEFAULT_SEEDS}, else from a drawn one on.",
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Begin no seed after so many minutes.")] = None,
    defect: Annotated[
        str,
        typer.Option(metavar="NAME", help="Seed a defect into the broker; `kafkatrial sensitivity --list` has them."),
    ] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, max=512, metavar="N", help="Processes; one for each core, if not given.")
    ] = None,
    failures: Annotated[int, typer.Option(min=1, metavar="N", help="Stop after so many failing seeds.")] = 1,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Run all seeds, whatever fails.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where failures are saved, and run again from; .kafkatrial/simulation/failures."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")] = False,
    digests: Annotated[
        bool, typer.Option("--digests", help="Also print each seed's digest: the same on any machine.")
    ] = False,
) -> ExitCode:
    """Run the reference cluster in virtual time: thousands of trials, each from its seed."""
    from kafkatrial.simulating import Choices, Simulating, plan_simulation

    choices = Choices(seeds, minutes, defect, workers, None if keep_going else failures)
    plan = plan_simulation(choices)
    return Simulating(plan, out, as_json=as_json, digests=digests).run()
