"""All commands as one Typer application.

Each command is a function in a module of its own under `commands/`, and imports what it works with when it is called.
"""

import os
from typing import Annotated

import typer

from kafkatrial.commands import broker
from kafkatrial.commands.chaos import chaos
from kafkatrial.commands.check import check
from kafkatrial.commands.collect import collect
from kafkatrial.commands.doctor import doctor
from kafkatrial.commands.export import export
from kafkatrial.commands.fuzz import fuzz
from kafkatrial.commands.nightly import nightly
from kafkatrial.commands.replay import replay
from kafkatrial.commands.report import report
from kafkatrial.commands.requirements import requirements
from kafkatrial.commands.run import run
from kafkatrial.commands.sensitivity import sensitivity
from kafkatrial.commands.simulate import simulate
from kafkatrial.commands.spark_job import spark_job
from kafkatrial.commands.synthesize import synthesize
from kafkatrial.commands.targets import targets_app
from kafkatrial.errors import complain
from kafkatrial.exit_codes import ExitCode
from kafkatrial.output import is_null_device
from linearizability.cache import cache_directory

_CLICK_INTERRUPTED = 130
_ARGPARSE = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""Pass every argument on: the command has a separate parser."""


def run_command(words: list[str]) -> ExitCode:
    """Run one command; without one, show the help. Errors of the command itself are the caller's to report."""
    # Otherwise Hypothesis leaves a folder of its own wherever the command is run.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_directory() / "hypothesis"))
    try:
        code = _build_app()(words or ["--help"], prog_name="kafkatrial", standalone_mode=False)
    except typer.TyperException as error:
        complain(f"{error.format_message()} (try: kafkatrial --help)")
        return ExitCode.USAGE
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # Typer and Rich turn it into exit code 1, our "violation"; Rich has put the null device in the pipe's place.
        if is_null_device():
            return ExitCode.OUTPUT_CLOSED
        raise end.__context__ from None
    return ExitCode.INTERRUPTED if code == _CLICK_INTERRUPTED else ExitCode(code or 0)


def _build_app() -> typer.Typer:
    app = typer.Typer(
        name="kafkatrial",
        help="Put Kafka brokers on trial: drive them, break their network, and judge what they promised.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(run)
    app.command()(chaos)
    app.command()(nightly)
    app.command()(fuzz)
    app.command()(simulate)
    app.command()(replay)
    app.command()(sensitivity)
    app.command()(check)
    app.command()(report)
    app.command()(export)
    app.command()(collect)
    app.command()(spark_job)
    app.command()(synthesize)
    app.add_typer(targets_app, name="targets")
    app.command()(doctor)
    app.command()(requirements)
    app.command("broker", help=broker.SUMMARY, context_settings=_ARGPARSE)(_broker)
    app.callback()(_options)
    return app


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from kafkatrial.versions import version_lines

        typer.echo("\n".join(version_lines()))
        raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options before the command."""


def _broker(context: typer.Context) -> ExitCode:
    """Run `broker` with its own parser, as `kafkatrial.__main__` does without loading Typer."""
    return broker.run_broker(context.args)
