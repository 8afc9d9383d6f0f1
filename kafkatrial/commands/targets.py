"""`kafkatrial targets`: a list of the kinds of targets, their installation, and a probe of a running broker."""

from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.commands.help_format import Command, CommandGroup, examples_text
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import CLIENT_SETTINGS_HELP, TARGETS_HELP, use_client_settings, use_recipes

EXAMPLES = (
    "kafkatrial targets",
    "kafkatrial targets install apache-kafka:4.3.1",
    "kafkatrial targets probe localhost:9092",
)
_INSTALL_EXAMPLES = ("kafkatrial targets install apache-kafka:4.3.1", "kafkatrial targets install toxiproxy")
_PROBE_EXAMPLES = ("kafkatrial targets probe localhost:9092",)

targets_app = typer.Typer(cls=CommandGroup)


@targets_app.callback(invoke_without_command=True, epilog=examples_text(EXAMPLES))
def list_targets(
    context: typer.Context,
    recipes: Annotated[Path | None, typer.Option("--targets", metavar="FILE", help=TARGETS_HELP)] = None,
) -> ExitCode:
    """List the kinds of targets, install the software that one needs, or probe a running broker."""
    if context.invoked_subcommand is None:
        from kafkatrial.console import show, stdout_console
        from kafkatrial.target_tables import render_kinds

        use_recipes(recipes)
        show(stdout_console(), render_kinds())
    elif recipes is not None:
        raise UsageError(f"--targets: `targets {context.invoked_subcommand}` reads no file of targets")
    return ExitCode.OK


@targets_app.command(cls=Command, epilog=examples_text(_INSTALL_EXAMPLES))
def install(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Software to install: apache-kafka:VERSION, apache-kafka-container:TAG, toxiproxy or spark. VERSION "
            "and TAG may be omitted (default: 4.3.1).",
        ),
    ],
) -> ExitCode:
    """Download or build the software that a target needs. No other command downloads anything."""
    if name == "spark":
        return _install_spark()
    from fixtures.targets.install import install as install_target
    from kafkatrial.installing import show_progress

    with show_progress(name) as progress:
        path = install_target(name, progress)
    typer.echo(f"{name} is installed in {path}")
    return ExitCode.OK


def _install_spark() -> ExitCode:
    """Create the class data archive that halves the start time of a Spark session; pip installs PySpark."""
    from reports.spark.archive import make_archive

    typer.echo(f"the class data archive of Spark is {make_archive()}")
    return ExitCode.OK


@targets_app.command(cls=Command, epilog=examples_text(_PROBE_EXAMPLES))
def probe(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Address of a running broker.")],
    settings: Annotated[
        Path | None, typer.Option("--client-settings", metavar="FILE", help=CLIENT_SETTINGS_HELP)
    ] = None,
) -> ExitCode:
    """Show the cluster of a running broker, and the API versions that this broker supports."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 1 << 16):
        raise UsageError(f"{address}: the address must be HOST:PORT")
    from fixtures.targets.connection_settings import settings_of_environment
    from fixtures.targets.probe import probe as probe_broker
    from kafkatrial.console import show, stdout_console
    from kafkatrial.target_tables import render_probe

    use_client_settings(settings)
    facts = probe_broker(host.strip("[]"), int(port), settings=settings_of_environment())
    show(stdout_console(), render_probe(facts))
    return ExitCode.OK
