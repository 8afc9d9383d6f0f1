"""The command line: `kafkatrial COMMAND`, also `python -m kafkatrial COMMAND`.

Each command is a function in a module of its own under `commands/`, and imports what it works with when it is called,
so that `kafkatrial broker` is not slowed down by what `kafkatrial run` needs.
"""

import sys
from collections.abc import Sequence

import typer

from kafkatrial import suite
from kafkatrial.commands.broker import broker
from kafkatrial.commands.check import check
from kafkatrial.commands.requirements import requirements
from kafkatrial.commands.run import run
from kafkatrial.commands.targets import targets_app
from kafkatrial.errors import complain, report
from kafkatrial.exit_codes import ExitCode

_CLICK_INTERRUPTED = 130


def build_app() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="kafkatrial",
        help="Put Kafka brokers on trial: drive them, break their network, and judge what they promised.",
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(run)
    app.command()(check)
    app.add_typer(targets_app, name="targets")
    app.command()(requirements)
    app.command()(broker)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    suite.activate()
    sys.exit(exit_code(arguments))


def exit_code(arguments: Sequence[str] | None = None) -> ExitCode:
    """Run one command; without one, show the help. Any error becomes one line on standard error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = build_app()(words or ["--help"], prog_name="kafkatrial", standalone_mode=False)
    except typer.TyperException as error:
        complain(f"{error.format_message()} (try: kafkatrial --help)")
        return ExitCode.USAGE
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  the one place where every error becomes a line
        return report(error)
    if code == _CLICK_INTERRUPTED:
        return ExitCode.INTERRUPTED
    return ExitCode(code or 0)


if __name__ == "__main__":
    main()
