"""Contest of two searches of one subhistory, which take turns: the first one to finish decides.

Neither is always the better one. The frontier search copes with a long history, unknown operations or a violation; the
depth-first search copes with many states as long as the history is valid. The frontier search begins, and continues as
long as it needs only a few steps per event, which decides most histories. Otherwise it gets one step for every
`DEPTH_FIRST_SHARE` steps of the depth-first search, whose steps cost about a tenth.
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
DEPTH_FIRST_SHARE = 64
FIRST_PIECE_STEPS = 128


class EngineName(StrEnum):
    """The name of a search."""

    FRONTIER = "frontier"
    DEPTH_FIRST = "depth-first"


@dataclass(slots=True)
class Contestant:
    """An engine, started when it first has a turn, and what it has used."""

    name: EngineName
    progress: Progress
    engine: Engine | None = None
    gave_up: bool = False
    piece_steps: int = FIRST_PIECE_STEPS
    """The number of steps before the clock is read."""

    @property
    def easy_steps(self) -> int:
        """The number of steps that an easy search would have used for the events done so far."""
        return EASY_STEPS + EASY_STEPS_PER_EVENT * self.progress.events_done


class Contest:
    """The searches of one timeline."""

    def __init__(self, timeline: Timeline, model: Model, engines: tuple[EngineName, ...]) -> None:
        self.timeline = timeline
        self.finding: SearchResult | None = None
        self.winner: EngineName | None = None
        self.contestants = [Contestant(name, Progress()) for name in engines]
        self._model = model

    @property
    def steps(self) -> int:
        """Steps of all engines so far."""
        return sum([contestant.progress.steps for contestant in self.contestants])

    @property
    def held_bytes(self) -> int:
        """Memory in use now, by estimate."""
        return sum([contestant.progress.held_bytes for contestant in self.contestants])

    @property
    def peak_bytes(self) -> int:
        """The most that the engines held, as if all had held it at one time."""
        return sum([contestant.progress.peak_bytes for contestant in self.contestants])

    @property
    def exhausted(self) -> bool:
        """True if no engine is left that could decide it."""
        return self.finding is None and not self._running()

    def work(self, steps: int) -> Contestant:
        """Run some steps of the engine whose turn it is, and return it. Set `finding` when it is done."""
        contestant, most_steps = self._next()
        if contestant.engine is None:
            contestant.engine = self._start(contestant)
        progress = contestant.progress
        progress.allowance = progress.steps + min(steps, most_steps, contestant.piece_steps)
        try:
            next(contestant.engine)
        except StopIteration as done:
            self.finding, self.winner = done.value, contestant.name
            self.release()
        return contestant

    def release(self) -> None:
        """Release the memory of the engines."""
        for contestant in self.contestants:
            self._give_up(contestant)

    def shed(self) -> None:
        """End the engine that holds the most memory."""
        self._give_up(max(self._running(), key=lambda contestant: contestant.progress.held_bytes))

    def _running(self) -> list[Contestant]:
        return [contestant for contestant in self.contestants if not contestant.gave_up]

    def _next(self) -> tuple[Contestant, int]:
        """Return the engine whose turn it is, and its maximum number of steps."""
        running = self._running()
        first = running[0]
        if len(running) == 1:
            return first, first.piece_steps
        easy = first.easy_steps - first.progress.steps
        if easy > 0:
            return first, easy
        other = running[1]
        if -easy * DEPTH_FIRST_SHARE < other.progress.steps:
            return first, max(FIRST_PIECE_STEPS, other.piece_steps // DEPTH_FIRST_SHARE)
        return other, other.piece_steps

    def _start(self, contestant: Contestant) -> Engine:
        if contestant.name is EngineName.FRONTIER:
            return FrontierSearch(self.timeline, contestant.progress).run()
        return DepthFirstSearch(self.timeline, self._model, contestant.progress).run()

    def _give_up(self, contestant: Contestant) -> None:
        contestant.gave_up = True
        contestant.progress.held_bytes = 0
        if contestant.engine is not None:
            contestant.engine.close()
            contestant.engine = None
            if contestant.name is EngineName.FRONTIER:
                self.timeline.forget_states()
