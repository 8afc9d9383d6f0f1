"""The command line: `kafkatrial COMMAND`, also `python -m kafkatrial COMMAND`.

`broker` bypasses Typer, which takes 0.3 s to load: a third of the time that a test waits for a cluster.

`python -m` puts the working directory first on the import path. This module removes that entry (except in a checkout)
before it imports anything but `os` and `sys`, since a user may have a `linearizability` or a `struct.py` there. Modules
that Python imports before this one still come from the working directory: a `types.py`, or a package `kafkatrial`.
Neither the command `kafkatrial` nor `python -P -m kafkatrial` is affected.
"""

import os
import sys

_PARENT = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - `pathlib` might be the user's
if __name__ == "__main__" and sys.path[0] == os.getcwd() != _PARENT:  # noqa: PTH109
    del sys.path[0]
import errno  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

from kafkatrial import suite  # noqa: E402
from kafkatrial.errors import full_directory, print_error, report, require_memory  # noqa: E402
from kafkatrial.exit_codes import ExitCode  # noqa: E402
from kafkatrial.output import accept_any_text, flush_output, is_reader_gone, output_problem  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    suite.activate()
    accept_any_text()
    problem = output_problem()
    if problem is not None:
        print_error(problem)
        sys.exit(ExitCode.INTERNAL)
    sys.exit(flush_output(exit_code(sys.argv[1:] if arguments is None else arguments)))


def exit_code(arguments: Sequence[str]) -> ExitCode:
    """Run one command and return its exit code. Any error becomes one line on standard error.

    There is no line after an interruption, and none if the reader of standard output has ended.
    """
    try:
        if arguments and arguments[0] == "broker":
            from kafkatrial.commands.broker import run_broker

            return run_broker(arguments[1:])
        require_memory()
        from kafkatrial.app import run_command

        return run_command(list(arguments))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError as error:
        return ExitCode.OUTPUT_CLOSED if is_reader_gone() else report(error)
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            return report(error)
        out = output_directory(arguments)
        if full_directory(error, out) is not None:
            return report(error, out)
        print_error(f"cannot write: {error.strerror}")  # most likely to standard output, which has no file name
        return ExitCode.INTERNAL
    except Exception as error:  # noqa: BLE001  the one place where every error becomes a line
        return report(error)


def output_directory(arguments: Sequence[str]) -> Path | None:
    """Return the value of `--out`, the option for the directory that a command writes; None without the option."""
    for option, value in zip(arguments, (*arguments[1:], ""), strict=True):
        name, has_value, own_value = option.partition("=")
        if name == "--out":
            return Path(own_value if has_value else value)
    return None


if __name__ == "__main__":
    main()
