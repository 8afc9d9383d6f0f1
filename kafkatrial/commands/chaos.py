"""`kafkatrial chaos`: clusters of processes, broken by drawn schedules while clients work on them."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

_OF_ONE_ROUND = frozenset({"target", "packets", "disk"})
"""What can be said of a round that is known."""


def chaos(  # noqa: PLR0917  a parameter is an option
    context: typer.Context,
    target: Annotated[
        list[str] | None, typer.Option(metavar="KIND[:VERSION]", help="Cluster to break; repeat it for several.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", help="Begin no round after so many minutes; without it, one round.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, metavar="N", help="So many rounds.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The first round's; drawn if not given.")] = None,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Kinds of faults to draw from; repeat it. All by default.")
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Go on after a violation.")] = False,
    shrink_minutes: Annotated[
        float, typer.Option(min=0, metavar="M", help="For making a round that failed smaller; 0: leave it as it is.")
    ] = 5.0,
    again: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run a kept failure again, and nothing else.")
    ] = None,
    show: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show a finding by its round; --show list says which there are.")
    ] = None,
    find: Annotated[
        str | None, typer.Option(metavar="NAME", help="Draw schedules until one shows this finding, and shrink it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory; .kafkatrial/chaos/<time>-<seed>.")
    ] = None,
    packets: Annotated[
        bool, typer.Option("--packets", help="Break links on packets, in a network namespace of its own.")
    ] = False,
    history_topic: Annotated[
        str | None, typer.Option(metavar="T", help="Send the histories to a topic as well, while they are made.")
    ] = None,
    history_bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of that topic's Kafka, which is not on trial.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Count and judge each round while it goes on, on Spark, every few seconds.")
    ] = False,
    disk: Annotated[
        str | None, typer.Option(metavar="KIND", help="What log directories lie on: fuse, ext4, xfs; what it takes.")
    ] = None,
    load: Annotated[
        int, typer.Option(min=1, metavar="N", help="So many times the records in each batch of the producers.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")] = False,
) -> ExitCode:
    """Break real clusters by drawn schedules of faults, and judge what their clients saw."""
    from kafkatrial.breaking import Breaking, Choices, beside, disk_named, plan_chaos, run_again
    from kafkatrial.findings import show_finding

    for known in ("again", "show"):
        _refuse_others(context, known)
    if packets:
        from kafkatrial.packets import enter_namespace

        enter_namespace()
    targets, node_disk = tuple(target or ("reference",)), disk_named(disk)
    if again is not None:
        return run_again(again, target, node_disk)
    if show is not None:
        return show_finding(show, targets, node_disk)
    choices = Choices(
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
    companions = beside(choices)
    if live:
        from reports.spark.session import require_java, require_spark

        require_spark()
        require_java()
    return Breaking(plan_chaos(choices), as_json=as_json, beside=companions, is_live=live).run()


def _refuse_others(context: typer.Context, name: str) -> None:
    """Of an option that names a round, refuse those that have no meaning beside it."""
    given = {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if parameter.name and (source := context.get_parameter_source(parameter.name)) and source.name == "COMMANDLINE"
    }
    others = [option for parameter, option in given.items() if parameter not in {name, *_OF_ONE_ROUND}]
    if name in given and others:
        raise UsageError(f"{given[name]} runs a round that is known, and takes no {', '.join(others)}")
