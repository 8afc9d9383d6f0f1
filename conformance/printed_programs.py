"""What the printed programs of both kinds of script have in common: the target they run on, and how they end."""

from typing import Final

from conformance.targets import starts_nodes
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import NotInstalledError, Target, UnknownTargetError
from linearizability.judgement import Verdict

EXIT_CODES: Final = {Verdict.OK: 0, Verdict.VIOLATION: 1, Verdict.UNKNOWN: 6}
"""The design's. `kafkatrial.exit_codes` has them too, but no import points up to it."""
_TARGET_FAILED: Final = 3
_USAGE: Final = 4


def target_of_program(chosen: str, *, written_for: str, nodes: int) -> Target:
    """The target to run on, not started: of the size that the script was drawn for, unless another one is chosen.

    Raises `TargetError`.
    """
    same_size = chosen == written_for and starts_nodes(chosen)
    return parse_target(chosen, nodes=nodes if same_size else None)


def exit_code_without_verdict(error: Exception) -> int:
    """Why a program came to no verdict."""
    return _USAGE if isinstance(error, NotInstalledError | UnknownTargetError) else _TARGET_FAILED
