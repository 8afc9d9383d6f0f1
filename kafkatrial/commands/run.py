"""`kafkatrial run`: hold clusters to the requirements."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode


def run(  # noqa: PLR0917  a parameter is an option
    requirement: Annotated[
        list[str] | None, typer.Argument(metavar="[REQUIREMENT]...", help="Ids or areas; all if none is named.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[:VERSION]", help="Cluster to try; several run side by side. Default: reference."),
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Brokers per cluster. Default: 3.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the same scripts again. Default: a new seed, printed.")] = None,
    level: Annotated[str | None, typer.Option(metavar="must|should", help="Weakest promise to check.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="ci|nightly", help="How much to try.")] = None,
    expectations: Annotated[Path | None, typer.Option(help="TOML file of violations that are known.")] = None,
    out: Annotated[Path | None, typer.Option(help="Default: .kafkatrial/runs/<time>-<seed>.")] = None,
    events: Annotated[int | None, typer.Option(hidden=True)] = None,
    plan: Annotated[bool, typer.Option("--plan", hidden=True)] = False,
) -> ExitCode:
    """Hold clusters to the requirements and report what was found."""
    from kafkatrial.running import Running, plan_as_json, plan_run
    from kafkatrial.settings import load_settings

    settings = load_settings(
        {
            "target": tuple(target or ()),
            "nodes": nodes,
            "seed": seed,
            "level": level,
            "profile": profile,
            "expectations": expectations,
            "out": out,
        }
    )
    chosen = plan_run(settings, tuple(requirement or ()))
    if plan:
        typer.echo(plan_as_json(chosen))
        return ExitCode.OK
    return Running(chosen, events_fd=events).run()
