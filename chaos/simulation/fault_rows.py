"""The rows of the table `faults`: one begins before its fault does, and ends when that is over."""

from collections.abc import Callable
from contextlib import ExitStack

from linearizability.history.recorder import Recorder

Heal = Callable[[], None]
"""Ends a fault, and its row."""


class FaultRows:
    """Those of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def row(self, kind: str, target: str | None, argument: str | None) -> ExitStack:
        """A row, which ends when what is returned is closed."""
        stack = ExitStack()
        stack.enter_context(self._recorder.fault(kind, target, argument))
        return stack
