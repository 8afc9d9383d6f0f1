"""`kafkatrial run`: the conformance suite on one or several clusters."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import CLIENT_SETTINGS_HELP, TARGETS_HELP, use_client_settings, use_recipes

EXAMPLES = (
    "kafkatrial run --target bootstrap:localhost:9092",
    "kafkatrial run --target reference --target apache-kafka:4.3.1",
    "kafkatrial run --targets brokers.toml --target mybroker",
    "kafkatrial run --seed 7 produce/corrupt-batch-is-rejected",
)


def run(  # noqa: PLR0917  a parameter is an option
    requirement: Annotated[
        list[str] | None,
        typer.Argument(metavar="REQUIREMENT", help="Ids or areas of the requirements to check (default: all)."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[:VERSION]", help="Cluster to test; may be repeated to compare (default: reference)."
        ),
    ] = None,
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
    client_settings: Annotated[
        Path | None, typer.Option("--client-settings", metavar="FILE", help=CLIENT_SETTINGS_HELP)
    ] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Number of brokers per cluster (default: 3).")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the generated scripts (default: a random one, printed).")
    ] = None,
    level: Annotated[
        str | None, typer.Option(metavar="must|should", help="Weakest level of requirement to check (default: should).")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="ci|nightly", help="How many scripts per requirement: few (ci) or many (nightly) (default: ci)."
        ),
    ] = None,
    expectations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="TOML file of known violations (default: that of the target, if it has one)."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory (default: a new one in .kafkatrial/runs).")
    ] = None,
    events: Annotated[int | None, typer.Option(hidden=True)] = None,
    plan: Annotated[bool, typer.Option("--plan", hidden=True)] = False,
) -> ExitCode:
    """Check clusters against the requirements with generated scripts and faults."""
    from kafkatrial.running import SuiteRunner, plan_as_json, plan_run
    from kafkatrial.settings import load_settings

    use_recipes(recipes)
    use_client_settings(client_settings)
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
    return SuiteRunner(chosen, events_fd=events).run()
