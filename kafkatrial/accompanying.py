"""What goes beside every round of a session of chaos: its history to a topic, a look at it while it is made.

A companion is a context manager over a round's run directory, entered when the round begins and left when its history
has ended. What goes wrong beside a round is told and harms neither the round nor those that follow.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

from chaos.live.events import ChaosEnded, RoundJudged, RoundNotRun, RoundStarted
from conformance.events import Event
from kafkatrial.errors import complain, exit_code_of

Companion = Callable[[Path], AbstractContextManager[object]]
"""Makes one for a run directory, which need not be there yet."""


class Companions:
    """The companions of the round that runs."""

    def __init__(self, kinds: Sequence[Companion]) -> None:
        self._kinds = kinds
        self._run_dir: Path | None = None
        self._stack = ExitStack()
        self.failed = False
        """Whether anything went wrong beside a round."""

    def handle(self, event: Event) -> None:
        """Begin and end with rounds. Rounds that shrink a failure go without."""
        match event:
            case RoundStarted():
                self._run_dir = Path(event.run_dir)
                for kind in self._kinds:
                    self._guarded(partial(self._enter, kind, Path(event.run_dir)))
            case RoundJudged() if Path(event.run_dir) != self._run_dir:
                pass
            case RoundJudged() | RoundNotRun() | ChaosEnded():
                self._guarded(self._stack.close)
                self._stack = ExitStack()
            case _:
                pass

    def _enter(self, kind: Companion, run_dir: Path) -> None:
        self._stack.enter_context(kind(run_dir))

    def _guarded(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            if exit_code_of(error) is None:
                raise
            self.failed = True
            complain(str(error))
