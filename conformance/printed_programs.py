"""Common parts of the programs printed for sequential and for concurrent scripts: target, output and exit code."""

import io
import os
import sys
from typing import Final

from conformance.targets import starts_nodes, target_of_requirements
from fixtures.targets.recipe_file import VARIABLE, file_of_table
from fixtures.targets.target import NotInstalledError, RecipeError, Target, UnknownTargetError
from linearizability.judgement import Verdict
from linearizability.printable import printable

EXIT_CODES: Final = {Verdict.OK: 0, Verdict.VIOLATION: 1, Verdict.UNKNOWN: 6}
"""Exit codes as in `kafkatrial.exit_codes`, which this package must not import."""
_TARGET_FAILED: Final = 3
_USAGE: Final = 4
_OUTPUT_CLOSED: Final = 141


def targets_argument(*targets: str) -> str:
    """Return the argument of a printed program with the file of the targets' tables; empty if none has a table."""
    file = next(filter(None, map(file_of_table, targets)), None)
    return "" if file is None else f", targets={str(file)!r}"


def target_of_program(chosen: str, *, written_for: str, nodes: int, targets: str) -> Target:
    """Return the chosen target, not started. Raises `TargetError`.

    :param nodes: number of nodes to start, if the chosen target is the one that the program was written for. Any other
        target, and an existing cluster, has its own number.
    :param targets: file with the table of the target that the program was written for, unless the environment names
        another file; empty if the target needs no file.
    """
    same_size = chosen == written_for and starts_nodes(chosen)
    if targets and not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = targets
    try:
        return target_of_requirements(chosen, nodes=nodes if same_size else None)
    except RecipeError as error:
        raise RecipeError(f"{error}; the variable {VARIABLE} may name another file") from error


def print_output(text: str) -> None:
    """Print text on standard output, with unprintable characters escaped. If its reader has ended, exit with 141."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # its encoding may lack characters of the text
    try:
        print(printable(text, None), flush=True)  # noqa: T201 - a program's output
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes again at its end
        raise SystemExit(_OUTPUT_CLOSED) from None


def exit_code_without_verdict(error: Exception) -> int:
    """Return the exit code of a program that has no verdict because of an error."""
    return _USAGE if isinstance(error, NotInstalledError | UnknownTargetError) else _TARGET_FAILED
