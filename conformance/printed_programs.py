"""Common parts of the programs printed for sequential and for concurrent scripts: the target and the exit code."""

from typing import Final

from conformance.targets import starts_nodes, target_of_requirements
from fixtures.targets.recipe_file import VARIABLE
from fixtures.targets.target import NotInstalledError, Target, UnknownTargetError
from linearizability.judgement import Verdict

EXIT_CODES: Final = {Verdict.OK: 0, Verdict.VIOLATION: 1, Verdict.UNKNOWN: 6}
"""Exit codes as in `kafkatrial.exit_codes`, which this package must not import."""
_TARGET_FAILED: Final = 3
_USAGE: Final = 4


def target_of_program(chosen: str, *, written_for: str, nodes: int) -> Target:
    """Return the chosen target, not started. Raises `TargetError`.

    :param nodes: number of nodes to start, if the chosen target is the one that the program was written for. Any other
        target, and an existing cluster, has its own number.
    """
    same_size = chosen == written_for and starts_nodes(chosen)
    try:
        return target_of_requirements(chosen, nodes=nodes if same_size else None)
    except UnknownTargetError as error:
        raise UnknownTargetError(f"{error}. The variable {VARIABLE} names the file of a broker of your own") from error


def exit_code_without_verdict(error: Exception) -> int:
    """Return the exit code of a program that has no verdict because of an error."""
    return _USAGE if isinstance(error, NotInstalledError | UnknownTargetError) else _TARGET_FAILED
