"""`kafkatrial nightly`: chaos through the night, by rotating seeds, on every target that is installed."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

MINUTES = 480.0


def nightly(
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[:VERSION]", help="Cluster to break; the reference broker and Kafka by default."),
    ] = None,
    minutes: Annotated[float, typer.Option(metavar="M", help="Begin no round after so many minutes.")] = MINUTES,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Go on after a violation.")] = False,
    packets: Annotated[
        bool, typer.Option("--packets", help="Break links on packets, in a network namespace of its own.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory; .kafkatrial/chaos/<time>-<seed>.")
    ] = None,
) -> ExitCode:
    """Chaos through the night: rounds by rotating seeds on each target in turn, each history kept."""
    from kafkatrial.breaking import Breaking, Choices, installed_targets, plan_chaos

    if packets:
        from kafkatrial.packets import enter_namespace

        enter_namespace()
    choices = Choices(tuple(target or installed_targets()), minutes, None, None, (), keep_going, 15.0, out)
    return Breaking(plan_chaos(choices), as_json=False).run()
