"""All commands as one Typer application.

Each command is a function in its own module under `commands/`, which imports its implementation when it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from kafkatrial.commands import (
    broker,
    chaos,
    check,
    collect,
    compare,
    doctor,
    expectations,
    export,
    fuzz,
    matrix,
    nightly,
    replay,
    report,
    requirements,
    run,
    sensitivity,
    simulate,
    spark_job,
    synthesize,
    targets,
)
from kafkatrial.commands.help_format import Command, CommandGroup, examples_text
from kafkatrial.errors import print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.output import is_null_device

_CLICK_INTERRUPTED = 130
_ARGPARSE = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""Settings with which Typer passes every argument to the command, which has its own parser."""
EXAMPLES = (
    "kafkatrial doctor",
    "kafkatrial run --target bootstrap:localhost:9092",
    "kafkatrial check examples/histories/lost-write",
)
_PANELS: Mapping[str, Sequence[tuple[Callable[..., ExitCode], Sequence[str]]]] = {
    "Run": (
        (run.run, run.EXAMPLES),
        (compare.compare, compare.EXAMPLES),
        (chaos.chaos, chaos.EXAMPLES),
        (nightly.nightly, nightly.EXAMPLES),
        (fuzz.fuzz, fuzz.EXAMPLES),
        (simulate.simulate, simulate.EXAMPLES),
        (sensitivity.sensitivity, sensitivity.EXAMPLES),
    ),
    "Investigate": (
        (replay.replay, replay.EXAMPLES),
        (check.check, check.EXAMPLES),
        (report.report, report.EXAMPLES),
        (matrix.matrix, matrix.EXAMPLES),
        (export.export, export.EXAMPLES),
        (collect.collect, collect.EXAMPLES),
        (requirements.requirements, requirements.EXAMPLES),
    ),
    "Set up": (
        (doctor.doctor, doctor.EXAMPLES),
        (spark_job.spark_job, spark_job.EXAMPLES),
        (synthesize.synthesize, synthesize.EXAMPLES),
    ),
}
"""Commands by the panel of `kafkatrial --help` that lists them; `broker`, `expectations` and `targets` are added."""


def run_command(arguments: list[str]) -> ExitCode:
    """Run one command; without one, show the help. Errors of the command itself are raised."""
    try:
        code = _build_app()(arguments or ["--help"], prog_name="kafkatrial", standalone_mode=False)
    except typer.TyperException as error:
        print_error(f"{error.format_message()} (try: kafkatrial --help)")
        return ExitCode.USAGE
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # If the reader of the pipe has ended, Typer or Rich exits with code 1, which means "violation" here. At that
        # time Rich has replaced standard output by the null device.
        if is_null_device():
            return ExitCode.OUTPUT_CLOSED
        raise end.__context__ from None
    return ExitCode.INTERRUPTED if code == _CLICK_INTERRUPTED else ExitCode(code or 0)


def _build_app() -> typer.Typer:
    app = typer.Typer(
        name="kafkatrial",
        cls=CommandGroup,
        help="Put Kafka brokers on trial: run clients and faults on a cluster, and judge the history.",
        epilog=examples_text(EXAMPLES),
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for panel, commands in _PANELS.items():
        for command, examples in commands:
            app.command(cls=Command, rich_help_panel=panel, epilog=examples_text(examples))(command)
    app.command("broker", help=broker.SUMMARY, rich_help_panel="Run", context_settings=_ARGPARSE)(_broker)
    app.add_typer(expectations.expectations_app, name="expectations", rich_help_panel="Investigate")
    app.add_typer(targets.targets_app, name="targets", rich_help_panel="Set up")
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
    """Accept the options that precede the command."""


def _broker(context: typer.Context) -> ExitCode:
    """Run `broker` with its own parser, as `kafkatrial.__main__` does without importing Typer."""
    return broker.run_broker(context.args)
