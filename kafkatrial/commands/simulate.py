"""`kafkatrial simulate`: trials from seeds on the reference cluster in virtual time."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

DEFAULT_SEEDS = "0..999"
EXAMPLES = (
    "kafkatrial simulate",
    "kafkatrial simulate --seeds 42",
    "kafkatrial simulate --minutes 10 --keep-going",
)


def simulate(  # noqa: PLR0917  a parameter is an option
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="A..B",
            help=f"Seeds from A to B, or one seed (default: {DEFAULT_SEEDS}; with --minutes: from a random one).",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="Number of minutes after which no seed starts (default: run all seeds)."),
    ] = None,
    defect: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Defect to seed into the broker (default: none; `kafkatrial sensitivity --list` lists them).",
            show_default=False,
        ),
    ] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, max=512, metavar="N", help="Number of processes (default: one per core).")
    ] = None,
    failures: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of failing seeds after which the run ends.")
    ] = 1,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Run all seeds, however many fail.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of saved failures, which run first (default: .kafkatrial/simulation/failures).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    digests: Annotated[
        bool, typer.Option("--digests", help="Print each seed's digest as well, which is the same on any machine.")
    ] = False,
) -> ExitCode:
    """Run thousands of trials on the reference cluster in virtual time, each from its seed."""
    from kafkatrial.simulating import SimulationChoices, SimulationRunner, plan_simulation

    choices = SimulationChoices(seeds, minutes, defect, workers, None if keep_going else failures)
    plan = plan_simulation(choices)
    return SimulationRunner(plan, out, as_json=as_json, digests=digests).run()
