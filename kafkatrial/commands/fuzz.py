"""`kafkatrial fuzz`: well-formed and broken requests of every API and version, sent to every listener of a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode

DEFAULT_TARGET = "reference"
EXAMPLES = (
    "kafkatrial fuzz --target reference --minutes 5",
    "kafkatrial fuzz --replay examples/fuzz/fetch-snapshot-without-partitions.json",
)


def fuzz(  # noqa: PLR0917  a parameter is an option
    target: Annotated[
        str | None,
        typer.Option(metavar="KIND[:VERSION]", help="Cluster of three nodes to send requests to (default: reference)."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", help="Number of minutes to send requests for (default: 1).")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Number of seconds to send requests for, instead of minutes.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed of the requests (default: a random one, printed).")
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after a finding instead of ending the session.")
    ] = False,
    shrink_minutes: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="M",
            help="Number of minutes to reduce a finding to the fewest requests; 0 leaves it as it is.",
        ),
    ] = 5.0,
    response_ms: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="MS",
            help="Maximum time to respond to a probe, in ms (default: by target).",
        ),
    ] = None,
    memory_mb: Annotated[
        float | None,
        typer.Option(min=1, metavar="MB", help="Maximum resident memory of a node, in MB (default: by target)."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Send the requests of a saved finding to a new cluster, and nothing else."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory (default: a new one in .kafkatrial/fuzz).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> ExitCode:
    """Send broken requests to every listener of a cluster, and check that its nodes and records survive them."""
    from kafkatrial.fuzzing import Bounds, FuzzChoices, FuzzRunner, plan_fuzzing, replay_finding

    bounds = Bounds(response_ms, memory_mb)
    if replay is not None:
        return replay_finding(replay, target, bounds)
    choices = FuzzChoices(target or DEFAULT_TARGET, minutes, seconds, seed, keep_going, shrink_minutes, bounds, out)
    return FuzzRunner(plan_fuzzing(choices), as_json=as_json).run()
