"""Competition of two searches of one subhistory, which take turns: the first search to finish decides.

The frontier search is fast for long histories, unknown operations and violations; the depth-first search is fast for
valid histories with many states. The frontier search begins. It runs alone while it needs only a few steps per event,
and most histories are decided in this way. When it needs more, the depth-first search runs, too: `DEPTH_FIRST_SHARE` of
its steps for each further step of the frontier search. A depth-first step takes about a tenth of the time of a frontier
step.
"""

from dataclasses import dataclass
from enum import StrEnum

from linearizability.model import Model
from linearizability.search.depth_first import DepthFirstSearch
from linearizability.search.engine import Engine, Progress, SearchResult
from linearizability.search.frontier import FrontierSearch
from linearizability.search.timeline import Timeline

EASY_STEPS = 200
EASY_STEPS_PER_EVENT = 3
"""The frontier search runs alone for `EASY_STEPS`, plus `EASY_STEPS_PER_EVENT` for each event that it has processed."""
DEPTH_FIRST_SHARE = 64
FIRST_PIECE_STEPS = 128
"""The number of steps of an engine before the clock is read for the first time."""


class EngineName(StrEnum):
    """The name of a search."""

    FRONTIER = "frontier"
    DEPTH_FIRST = "depth-first"


@dataclass(slots=True)
class Competitor:
    """One of the searches: its engine, which is created at its first turn, and its progress."""

    name: EngineName
    progress: Progress
    engine: Engine | None = None
    gave_up: bool = False
    piece_steps: int = FIRST_PIECE_STEPS
    """The number of steps in one turn, after which the clock is read."""

    @property
    def easy_steps(self) -> int:
        """The number of steps after which the frontier search no longer runs alone."""
        return EASY_STEPS + EASY_STEPS_PER_EVENT * self.progress.events_done


class Competition:
    """The searches of one timeline."""

    def __init__(self, timeline: Timeline, model: Model, engines: tuple[EngineName, ...]) -> None:
        self.timeline = timeline
        self.finding: SearchResult | None = None
        self.winner: EngineName | None = None
        self.competitors = [Competitor(name, Progress()) for name in engines]
        self._model = model

    @property
    def steps(self) -> int:
        """The number of steps of all engines so far."""
        return sum([competitor.progress.steps for competitor in self.competitors])

    @property
    def held_bytes(self) -> int:
        """Estimated memory of all engines now."""
        return sum([competitor.progress.held_bytes for competitor in self.competitors])

    @property
    def peak_bytes(self) -> int:
        """The sum of the peaks of the engines' estimated memory. The peaks may be at different times."""
        return sum([competitor.progress.peak_bytes for competitor in self.competitors])

    @property
    def exhausted(self) -> bool:
        """Whether all engines have given up without a result."""
        return self.finding is None and not self._running()

    def work(self, steps: int) -> Competitor:
        """Run at most `steps` steps of the competitor whose turn it is; return the competitor.

        Set `finding` and `winner` if its engine has finished.
        """
        competitor, most_steps = self._next()
        if competitor.engine is None:
            competitor.engine = self._start(competitor)
        progress = competitor.progress
        progress.allowance = progress.steps + min(steps, most_steps, competitor.piece_steps)
        try:
            next(competitor.engine)
        except StopIteration as done:
            self.finding, self.winner = done.value, competitor.name
            self.release()
        return competitor

    def release(self) -> None:
        """End all engines, and release their memory."""
        for competitor in self.competitors:
            self._give_up(competitor)

    def shed(self) -> None:
        """End the engine that holds the most memory."""
        self._give_up(max(self._running(), key=lambda competitor: competitor.progress.held_bytes))

    def _running(self) -> list[Competitor]:
        return [competitor for competitor in self.competitors if not competitor.gave_up]

    def _next(self) -> tuple[Competitor, int]:
        """Return the competitor whose turn it is, and the maximum number of its steps in this turn."""
        running = self._running()
        first = running[0]
        if len(running) == 1:
            return first, first.piece_steps
        easy_left = first.easy_steps - first.progress.steps
        if easy_left > 0:
            return first, easy_left
        other = running[1]
        if -easy_left * DEPTH_FIRST_SHARE < other.progress.steps:
            return first, max(FIRST_PIECE_STEPS, other.piece_steps // DEPTH_FIRST_SHARE)
        return other, other.piece_steps

    def _start(self, competitor: Competitor) -> Engine:
        if competitor.name is EngineName.FRONTIER:
            return FrontierSearch(self.timeline, competitor.progress).run()
        return DepthFirstSearch(self.timeline, self._model, competitor.progress).run()

    def _give_up(self, competitor: Competitor) -> None:
        competitor.gave_up = True
        competitor.progress.held_bytes = 0
        if competitor.engine is not None:
            competitor.engine.close()
            competitor.engine = None
            if competitor.name is EngineName.FRONTIER:
                self.timeline.release_states()
