"""Companions of the rounds of a chaos session: they send the history to a topic, or show a live view of it.

A companion is a context manager over a round's run directory. It is entered when the round starts, and left when the
round has been judged or could not run. A known error of a companion (one with an exit code) is printed, and affects
neither this round nor those that follow. Any other error ends the session.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

from chaos.live.events import ChaosEnded, RoundJudged, RoundNotRun, RoundStarted
from conformance.events import Event
from kafkatrial.errors import exit_code_of, print_error

CompanionFactory = Callable[[Path], AbstractContextManager[object]]
"""Function that creates a companion for a run directory, which need not exist yet."""


class Companions:
    """The companions of the current round."""

    def __init__(self, factories: Sequence[CompanionFactory]) -> None:
        self._factories = factories
        self._stack = ExitStack()
        self.failed = False
        """Whether any companion has failed."""

    def handle(self, event: Event) -> None:
        """Enter the companions when a round starts, and leave them at its end. Runs that shrink failures have none."""
        match event:
            case RoundStarted():
                for factory in self._factories:
                    self._report_error(partial(self._enter, factory, Path(event.run_dir)))
            case RoundJudged(is_shrinking=True) | RoundNotRun(is_shrinking=True):
                pass
            case RoundJudged() | RoundNotRun() | ChaosEnded():
                self._report_error(self._stack.close)
                self._stack = ExitStack()
            case _:
                pass

    def _enter(self, factory: CompanionFactory, run_dir: Path) -> None:
        self._stack.enter_context(factory(run_dir))

    def _report_error(self, action: Callable[[], object]) -> None:
        """Do the action. Print a known error instead of raising it."""
        try:
            action()
        except Exception as error:
            if exit_code_of(error) is None:
                raise
            self.failed = True
            print_error(str(error))
