"""Exit codes of every command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of the process."""

    OK = 0
    """Every verdict is ok or as expected."""
    VIOLATION = 1
    """A violation, or an expected one that did not occur."""
    INTERRUPTED = 2
    INTERNAL = 3
    """An internal error, a target that did not start, a full disk, a standard output that cannot be written."""
    USAGE = 4
    """Wrong usage, something not installed, or input that cannot be read: no run directory, a damaged history."""
    NOTHING_RAN = 5
    INCONCLUSIVE = 6
    """Some verdict is unknown, and none is worse."""
    OUTPUT_CLOSED = 141
    """Standard output was a pipe whose reader has ended: the code that a shell shows for SIGPIPE."""

    @property
    def meaning(self) -> str:
        """Text for the last line of a run."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "every verdict is ok or as expected",
    ExitCode.VIOLATION: "a violation, or an expected one that did not happen",
    ExitCode.INTERRUPTED: "interrupted; the results so far are kept",
    ExitCode.INTERNAL: "an internal error, or a target that did not start",
    ExitCode.USAGE: "wrong usage, something not installed, or a history that cannot be read",
    ExitCode.NOTHING_RAN: "nothing ran",
    ExitCode.OUTPUT_CLOSED: "the reader of standard output has ended",
    ExitCode.INCONCLUSIVE: "inconclusive: nothing worse than unknown",
}
