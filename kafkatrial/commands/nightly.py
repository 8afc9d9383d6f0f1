"""`kafkatrial nightly`: a long session of `chaos`, by default on `reference` and an installed `apache-kafka`."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

MINUTES = 480.0
_SHRINK_MINUTES = 15.0
EXAMPLES = ("kafkatrial nightly --minutes 60", "kafkatrial nightly --target reference --keep-going")


def nightly(
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[:VERSION]",
            help="Cluster to break; may be repeated (default: reference, and apache-kafka if it is installed).",
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(metavar="M", help="Number of minutes after which no round starts.")
    ] = MINUTES,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after a violation instead of ending the session.")
    ] = False,
    packets: Annotated[
        bool, typer.Option("--packets", help="Inject link faults into packets, in a separate network namespace.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory (default: a new one in .kafkatrial/chaos).")
    ] = None,
) -> ExitCode:
    """Run chaos for hours: rounds with new seeds on each target in turn, and keep every history."""
    from kafkatrial.chaos_session import ChaosChoices, ChaosRunner, installed_targets, plan_chaos

    if packets:
        from kafkatrial.packets import enter_namespace

        enter_namespace()
    choices = ChaosChoices(
        targets=tuple(target or installed_targets()),
        minutes=minutes,
        rounds=None,
        seed=None,
        kinds=(),
        keep_going=keep_going,
        shrink_minutes=_SHRINK_MINUTES,
        out=out,
    )
    return ChaosRunner(plan_chaos(choices), as_json=False).run()
