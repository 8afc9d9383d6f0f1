"""Exit codes of every command, as the design fixes them."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process says to its caller."""

    OK = 0
    """Everything ok, or as expected."""
    VIOLATION = 1
    """A violation, or an expected one that did not happen."""
    INTERRUPTED = 2
    INTERNAL = 3
    """An internal error, a damaged history, a target that did not start."""
    USAGE = 4
    """Wrong usage, something not installed, not a run directory."""
    NOTHING_RAN = 5
    INCONCLUSIVE = 6
    """Nothing worse than unknown."""

    @property
    def meaning(self) -> str:
        """For the last line of a run."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "every verdict is ok or as expected",
    ExitCode.VIOLATION: "a violation, or an expected one that did not happen",
    ExitCode.INTERRUPTED: "interrupted; the results so far are kept",
    ExitCode.INTERNAL: "an internal error, a damaged history, or a target that did not start",
    ExitCode.USAGE: "wrong usage, something not installed, or not a run directory",
    ExitCode.NOTHING_RAN: "nothing ran",
    ExitCode.INCONCLUSIVE: "inconclusive: nothing worse than unknown",
}
