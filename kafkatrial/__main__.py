"""The command line: `kafkatrial COMMAND`, also `python -m kafkatrial COMMAND`.

`broker` goes past Typer, which takes 0.3 s to load: that is a third of what a test waits for a cluster.
"""

import sys
from collections.abc import Sequence

from kafkatrial import suite
from kafkatrial.errors import report
from kafkatrial.exit_codes import ExitCode


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    suite.activate()
    sys.exit(exit_code(sys.argv[1:] if arguments is None else arguments))


def exit_code(arguments: Sequence[str]) -> ExitCode:
    """Run one command. Any error becomes one line on standard error."""
    try:
        if arguments and arguments[0] == "broker":
            from kafkatrial.commands.broker import run_broker

            return run_broker(arguments[1:])
        from kafkatrial.app import run_command

        return run_command(list(arguments))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  the one place where every error becomes a line
        return report(error)


if __name__ == "__main__":
    main()
