"""`kafkatrial chaos`: generated schedules of faults on clusters of processes that clients use at the same time."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import TARGETS_HELP, use_recipes

EXAMPLES = (
    "kafkatrial chaos --target reference --target apache-kafka",
    "kafkatrial chaos --minutes 60 --fault power --fault cut",
    "kafkatrial chaos --show list",
    "kafkatrial chaos --again .kafkatrial/chaos/failures/DIR",
)
_SAVED_ROUND_OPTIONS = frozenset({"target", "recipes", "packets", "disk"})
"""Options that may be combined with one that selects a saved round (`--again`, `--show`)."""


def chaos(  # noqa: PLR0917  a parameter is an option
    context: typer.Context,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[:VERSION]", help="Cluster to break; may be repeated (default: reference)."),
    ] = None,
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="Number of minutes after which no round starts (default: run one round)."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of rounds (default: 1, or no limit with --minutes).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed of the first round (default: a random one, printed).")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Kind of fault to inject; may be repeated (default: every kind)."),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after a violation instead of ending the session.")
    ] = False,
    shrink_minutes: Annotated[
        float,
        typer.Option(min=0, metavar="M", help="Number of minutes to shrink a failed round; 0 leaves it as it is."),
    ] = 5.0,
    again: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run the saved failure in this directory, and nothing else.")
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run the round that shows a known finding; `--show list` lists them."),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Generate schedules until one shows this finding, and shrink it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory (default: a new one in .kafkatrial/chaos).")
    ] = None,
    packets: Annotated[
        bool, typer.Option("--packets", help="Inject link faults into packets, in a separate network namespace.")
    ] = False,
    history_topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Topic that also receives the histories while they are recorded."),
    ] = None,
    history_bootstrap: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Bootstrap address of the Kafka that has --history-topic."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Count and judge each round with Spark every few seconds while it runs.")
    ] = False,
    disk: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="File system for the log directories: fuse, ext4 or xfs (default: one that supports the faults).",
        ),
    ] = None,
    load: Annotated[
        int, typer.Option(min=1, metavar="N", help="Factor for the number of records in each producer batch.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> ExitCode:
    """Inject generated faults into real clusters, and judge the histories of their clients."""
    from kafkatrial.chaos_session import (
        ChaosChoices,
        ChaosRunner,
        make_companions,
        parse_disk_kind,
        plan_chaos,
        run_again,
    )
    from kafkatrial.findings import show_finding

    for saved in ("again", "show"):
        _reject_other_options(context, saved)
    use_recipes(recipes)
    if packets:
        from kafkatrial.packets import enter_namespace

        enter_namespace()
    targets, node_disk = tuple(target or ("reference",)), parse_disk_kind(disk)
    if again is not None:
        return run_again(again, target, node_disk)
    if show is not None:
        return show_finding(show, targets, node_disk)
    choices = ChaosChoices(
        targets,
        minutes,
        rounds,
        seed,
        tuple(fault or ()),
        keep_going,
        shrink_minutes,
        out,
        find,
        history_topic,
        history_bootstrap,
        node_disk,
        load,
    )
    companions = make_companions(choices)
    if live:
        from reports.spark.session import require_java, require_spark

        require_spark()
        require_java()
    return ChaosRunner(plan_chaos(choices), as_json=as_json, companions=companions, is_live=live).run()


def _reject_other_options(context: typer.Context, name: str) -> None:
    """Raise UsageError if the option `name`, which selects a saved round, is combined with options for new rounds."""
    given = {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if parameter.name and (source := context.get_parameter_source(parameter.name)) and source.name == "COMMANDLINE"
    }
    others = [option for parameter, option in given.items() if parameter not in {name, *_SAVED_ROUND_OPTIONS}]
    if name in given and others:
        raise UsageError(f"{given[name]} runs a saved round and cannot be combined with {', '.join(others)}")
