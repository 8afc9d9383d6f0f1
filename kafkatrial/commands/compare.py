"""`kafkatrial compare`: the same scripts on two targets, and the causes of different responses."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import CLIENT_SETTINGS_HELP, TARGETS_HELP, use_client_settings, use_recipes

EXAMPLES = (
    "kafkatrial compare --target apache-kafka:3.9.2 --target apache-kafka:4.3.1",
    "kafkatrial compare --target reference --target mybroker produce fetch",
    "kafkatrial compare --target A --target B --baseline known.json",
)


def compare(  # noqa: PLR0917  a parameter is an option
    requirement: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REQUIREMENT", help="Ids or areas of the requirements whose scripts to run (default: all)."
        ),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="KIND[:VERSION]", help="Cluster to compare; give it twice.")
    ] = None,
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
    client_settings: Annotated[
        Path | None, typer.Option("--client-settings", metavar="FILE", help=CLIENT_SETTINGS_HELP)
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Number of brokers per cluster (default: the smaller default of the two)."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Seed of the generated scripts (default: a random one, printed)."),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="ci|nightly", help="How many scripts per requirement: few (ci) or many (nightly).")
    ] = "ci",
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON file of known differences, which do not fail (default: none)."),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write the differences found into the baseline.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory (default: a new one in .kafkatrial/runs).")
    ] = None,
) -> ExitCode:
    """Run the same scripts on two targets, and group their different responses by cause."""
    from kafkatrial.comparing import compare_targets, plan_comparison

    use_recipes(recipes)
    use_client_settings(client_settings)
    plan = plan_comparison(
        tuple(target or ()),
        tuple(requirement or ()),
        nodes=nodes,
        seed=seed,
        profile=profile,
        baseline=baseline,
        update_baseline=update_baseline,
    )
    return compare_targets(plan, out)
