"""`kafkatrial targets`: what clusters there are, installing what they need, and looking at a running one."""

from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode

targets_app = typer.Typer(help="List the clusters that can be tried, install what they need, look at a running one.")


@targets_app.callback(invoke_without_command=True)
def list_targets(context: typer.Context) -> ExitCode:
    """List the clusters that can be tried, and what is missing for them."""
    if context.invoked_subcommand is None:
        from kafkatrial.console import show, stdout_console
        from kafkatrial.target_tables import render_kinds

        show(stdout_console(), render_kinds())
    return ExitCode.OK


@targets_app.command()
def install(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="apache-kafka:4.3.1, apache-kafka:3.9.2, apache-kafka-container, toxiproxy or spark"
        ),
    ],
) -> ExitCode:
    """Download or build what a target needs, into the user's cache. Nothing is downloaded at any other time."""
    if name == "spark":
        return _install_spark()
    from fixtures.targets.install import install as install_target
    from kafkatrial.installing import shown

    with shown(name) as progress:
        path = install_target(name, progress)
    typer.echo(f"{name} is installed in {path}")
    return ExitCode.OK


def _install_spark() -> ExitCode:
    """PySpark comes by pip; what is made here lets its JVM start in half the time."""
    from reports.spark.archive import make_archive

    typer.echo(f"Spark's classes are in {make_archive()}")
    return ExitCode.OK


@targets_app.command()
def probe(address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="A running broker.")]) -> ExitCode:
    """Ask a running broker for its cluster and the versions of every API it offers."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 1 << 16):
        raise UsageError(f"{address}: not HOST:PORT")
    from fixtures.targets.probe import probe as probe_broker
    from kafkatrial.console import show, stdout_console
    from kafkatrial.target_tables import render_probe

    show(stdout_console(), render_probe(probe_broker(host.strip("[]"), int(port))))
    return ExitCode.OK
